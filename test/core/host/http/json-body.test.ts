import test from 'ava';
import fc from 'fast-check';
import { parseJsonBody } from '../../../../src/core/host/http/json-body.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';

const parse = (text: string | Buffer) => parseJsonBody(Buffer.from(text as string));

test('any JSON document within the depth limit is parsed as JSON.parse does', (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 20 }), (text) => {
      if (/__proto__|constructor/.test(text)) return;
      t.deepEqual(parse(text), JSON.parse(text));
    }),
  );
  t.pass();
});

test('[R32] no error about a body quotes the body', (t) => {
  fc.assert(
    fc.property(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', '"', '}', ',', 'x', '\u0000'),
      (text, at, insert) => {
        const canary = 'CANARY';
        const place = at % (text.length + 1);
        const broken = `{"psk":"${canary}","x":${text.slice(0, place)}${insert}${text.slice(place)}`;
        try {
          parse(broken);
        } catch (error) {
          t.true(isCoded(error, 'HF_HTTP_BODY_INVALID'));
          t.false(String(error).includes(canary));
        }
      },
    ),
  );
});

for (const [title, text] of [
  ['__proto__', '{"__proto__":{"admin":true}}'],
  ['__proto__ twice', '{"__proto__":1,"__proto__":{"admin":true}}'],
  ['an escaped __proto__', '{"a":[{"\\u005f_proto__":{"admin":true}}]}'],
  ['constructor.prototype', '{"a":{"constructor":{"prototype":{"admin":true}}}}'],
  ['an escaped constructor', '{"\\u0063onstructor":{"prototype":1}}'],
] as const) {
  test(`a body with ${title} is refused`, (t) => {
    const error = t.throws(() => parse(text));
    t.true(isCoded(error, 'HF_HTTP_BODY_INVALID'));
  });
}

test('words that only look like poison are text like any other', (t) => {
  t.deepEqual(
    parse('{"a":"__proto__","constructor":"dnsmasq"}'),
    JSON.parse('{"a":"__proto__","constructor":"dnsmasq"}'),
  );
});

test('nesting is bounded, brackets in texts are not nesting', (t) => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  t.notThrows(() => parse(nested(64)));
  t.throws(() => parse(nested(65)), { message: /64 levels/ });
  t.throws(() => parse('{"a":'.repeat(500_000)), { message: /64 levels/ });
  t.notThrows(() => parse(JSON.stringify({ a: '['.repeat(1000), b: '\\"['.repeat(100) })));
});

test('bytes that are not UTF-8 are refused', (t) => {
  t.throws(() => parseJsonBody(Buffer.from([0x22, 0xff, 0xfe, 0x22])), { message: /UTF-8/ });
});
