import test from 'ava';
import fc from 'fast-check';
import { encode, NONE, readMessage } from '../../../src/plugins/gateway/mcp/message.ts';
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/plugins/gateway/mcp/protocol.ts';
import {
  EventBlocks,
  eventRewriter,
  parseEvent,
  rewriteMessage,
} from '../../../src/plugins/gateway/upstream/events.ts';
import { outcomeOf } from '../../../src/plugins/gateway/upstream/inspection.ts';

const ODD_NUMBERS = [
  '-0',
  '1.0',
  '1e400',
  '-1E+2',
  '12345678901234567890',
  '0.1e-7',
  '9007199254740993',
  '7',
];
const ODD_STRINGS = ['"\\u0061"', '"\\ud800"', '"\\/"', '"ü🌍"', '"__proto"', '"\\u0000"', '"1.0"'];

/** JSON as text: numbers, escapes and repeated keys as somebody might write them, not as we would. */
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...ODD_NUMBERS, ...ODD_STRINGS, 'true', 'null', '[]', '{}'),
    fc.array(tie('json'), { maxLength: 4 }).map((items) => `[${items.join(', ')}]`),
    fc
      .array(fc.tuple(fc.constantFrom('"a"', '"\\u0061"', '"b"', '"toJSON"', '"7"'), tie('json')), {
        maxLength: 4,
      })
      .map((fields) => `{${fields.map(([name, value]) => `${name} : ${value}`).join(',')}}`),
  ),
}));

/** What JSON says, with each number as it was written. */
function exactly(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? { number: context?.source } : value,
  );
}

const call = (given: string, id: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"first","name":"wiki-x","arguments":${given}}}`;

test('[G23] the upstream gets what was judged, to the last digit, with the tool by its own name', (t) => {
  const ids = fc.constantFrom('1', '1.0', '12345678901234567890', '"\\u0031"');
  const property = fc.property(json, ids, (given, id) => {
    const message = readMessage(Buffer.from(call(given, id)));
    if ('code' in message) throw new Error(message.text);
    t.is(message.name, 'wiki-x');
    const sent = encode(message, { name: 'x', fixed: NONE, defaults: NONE });
    t.deepEqual(exactly(sent), exactly(call(given, id).replace('wiki-x', 'x')));
    t.deepEqual(exactly(encode(message)), exactly(call(given, id)));
  });
  fc.assert(property, { numRuns: 500 });
});

test('any bytes are a message or an error of the protocol, never a throw', (t) => {
  const fragments = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"jsonrpc"',
    '"2.0"',
    '"method"',
    '"id"',
    '1',
    '"x"',
  );
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.array(fragments, { maxLength: 30 }).map((parts) => Buffer.from(parts.join(''))),
    json.map((text) => Buffer.from(text)),
    fc
      .dictionary(fc.constantFrom('jsonrpc', 'method', 'id', 'params', 'result'), fc.jsonValue())
      .map((value) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...value }))),
  );
  const property = fc.property(bodies, (body) => {
    const read = readMessage(body);
    t.true('code' in read ? [-32_700, -32_600, -32_602].includes(read.code) : read.body.jsonrpc === '2.0');
  });
  fc.assert(property, { numRuns: 1_000 });
});

for (const [title, text, code] of [
  ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32_600],
  ['an empty body', '', -32_700],
  ['half a message', '{"jsonrpc":"2.0"', -32_700],
  ['bytes that are no UTF-8', '{"jsonrpc":"2.0","id":"\xff"}', -32_700],
  [
    'a key that changes prototypes',
    '{"jsonrpc":"2.0","id":1,"method":"x","params":{"__proto__":{}}}',
    -32_700,
  ],
  ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"x"}', -32_600],
  ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"x"}', -32_600],
  ['a call without a tool', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32_600],
  [
    'an initialize whose revision is no text',
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":{"toString":1}}}',
    -32_602,
  ],
  ['params in a list', '{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', -32_600],
  ['nesting that serves only to exhaust', `${'['.repeat(100_000)}`, -32_600],
] as const) {
  test(`${title} is refused`, (t) => {
    t.like(readMessage(Buffer.from(text, 'latin1')), { code });
  });
}

test('[G10] a header’s value comes back as it was, in plain text or base64', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('=?base64?eA==?=')), (value) => {
      const encoded = encodeHeaderValue(value.toWellFormed());
      t.regex(encoded, /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/);
      t.is(decodeHeaderValue(encoded), value.toWellFormed());
    }),
  );
  for (const broken of ['=?base64?eA=?=', '=?base64?/w==?=', '=?base64?e A==?=']) {
    t.is(decodeHeaderValue(broken), undefined);
  }
});

const EVENTS = fc.array(
  fc.tuple(
    fc.constantFrom('', 'id: 1', 'retry: 5', ': note', 'event: message', 'unknown'),
    fc.constantFrom(
      'data:',
      'data: {"result":{"tools":[]}}',
      'data:{"n":1.0}',
      'data: a\ndata: b',
      'data: ü🌍',
    ),
    fc.constantFrom('\n', '\r\n', '\r'),
  ),
  { maxLength: 8 },
);

test('[G23] an event stream passes byte for byte however it is cut, but for what is rewritten', (t) => {
  const property = fc.property(EVENTS, fc.array(fc.nat(200), { maxLength: 6 }), (events, cuts) => {
    const text = events
      .map(
        ([field, data, end]) =>
          `${[field, ...data.split('\n')].filter((line) => line !== '').join(end)}${end}${end}`,
      )
      .join('');
    const bytes = Buffer.from(text);
    const at = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
    const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
    const same = eventRewriter({ change: (message) => message });
    // An end of line by CR alone is known as one when the next byte is there.
    const whole = chunks.map((chunk) => same.feed(chunk)).join('') + same.feed(Buffer.from('x'));
    t.true(text.startsWith(whole.trimEnd()) || whole.startsWith(text));
    const rewriter = eventRewriter({ change: (one) => rewriteMessage(one, () => 'new') });
    const rewritten =
      chunks.map((chunk) => rewriter.feed(chunk)).join('') + rewriter.feed(Buffer.from('\n\n\n'));
    const datas = (stream: string) =>
      new EventBlocks().push(Buffer.from(`${stream}\n\n`)).flatMap((block) => parseEvent(block).data ?? []);
    const wanted = datas(text).map((data) => (data.includes('tools') ? '{"result":"new"}' : data));
    t.deepEqual(datas(rewritten), wanted);
  });
  fc.assert(property, { numRuns: 300 });
});

test('[O24] tokens that nobody can have used are not counted, so that no sum becomes endless', (t) => {
  const told = (usage: string) => outcomeOf(JSON.parse(`{"result":{"_meta":{"usage":${usage}}}}`)).tokens;
  t.deepEqual(told('{"input_tokens":10,"output_tokens":0}'), { input: 10, output: 0 });
  for (const odd of ['1e999', '1e308', '-1', '0.5', '"7"', 'null']) {
    t.deepEqual(told(`{"input_tokens":${odd}}`), { input: undefined, output: undefined }, odd);
  }
});
