import test from 'ava';
import fc from 'fast-check';
import { HttpAnswer } from '../../../../src/core/host/http/client.ts';
import { activeOf, setAnswerOf } from '../../../../src/plugins/router/remote/answers.ts';
import { parsePayload } from '../../../../src/plugins/router/remote/events.ts';

const came = (status: number, text: string) => new HttpAnswer(status, {}, Buffer.from(text), false);
const answer = (status: number, body: unknown) => setAnswerOf(came(status, JSON.stringify(body)));

test("[R3,R25] a daemon's own words are understood, whichever else stand beside them", (t) => {
  t.deepEqual(answer(200, { errors: [], ncid: 'n2' }), { kind: 'applied', ncid: 'n2' });
  t.deepEqual(answer(400, { errors: ['ncid not match'] }), { kind: 'conflict' });
  t.deepEqual(answer(400, { errors: ['Something else', 'ncid not match'] }), { kind: 'conflict' });
  const pending = 'A config change transaction context is in progress, reject non-transaction change request';
  t.deepEqual(answer(400, { errors: [pending] }), { kind: 'pending' });
  const bad = ['Invalid ipv6 address X for Y', 'rolled back'];
  t.deepEqual(answer(400, { errors: bad }), { kind: 'refused', errors: bad });
});

test('[R3,R25] ours says by its code what the daemon says by its text', (t) => {
  const errors = ['The posted ncid is not the current one: somebody saved in between.'];
  t.deepEqual(answer(400, { errors, code: 'HF_ROUTER_NCID_MISMATCH' }), { kind: 'conflict' });
  t.deepEqual(answer(400, { errors, code: 'HF_ROUTER_TRANSACTION_PENDING' }), { kind: 'pending' });
  t.is(answer(503, { errors, code: 'HF_ROUTER_BUSY' }).kind, 'unknown');
});

test('[R25] what proves nothing is unknown: success with errors or without ncid, 5xx, "not now", redirects', (t) => {
  for (const status of [100, 204, 301, 302, 307, 408, 425, 429, 500, 502, 503, 504])
    t.is(answer(status, { errors: [], ncid: 'n2' }).kind, 'unknown', `${status}`);
  t.is(answer(200, { errors: ['half of it'], ncid: 'n2' }).kind, 'unknown');
  t.is(answer(200, { errors: [] }).kind, 'unknown');
  t.is(answer(500, { errors: ['ncid not match'] }).kind, 'unknown', 'no proxy speaks for the router');
});

test('[R25] a refusal always says something, and never at length', (t) => {
  const texts = fc.oneof(fc.json(), fc.string(), fc.constantFrom('', 'Not Found', '<html>', '{"errors":[]}'));
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 499 }), texts, (status, text) => {
      const said = setAnswerOf(came(status, text));
      if (said.kind !== 'refused') return;
      t.true(said.errors.length > 0 && said.errors.length <= 10);
      t.true(said.errors.every((error) => error.length <= 300));
    }),
  );
  const long = answer(400, { errors: Array.from({ length: 100 }, () => 'x'.repeat(10_000)) });
  t.true(JSON.stringify(long).length < 4_000);
  t.pass();
});

test('[R25] no answer whatsoever is taken for an applied write unless it is a 200 with a new ncid', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), fc.jsonValue(), (status, body) => {
      const said = answer(status, body);
      return said.kind !== 'applied' || (status === 200 && (body as any).ncid === said.ncid);
    }),
  );
  t.pass();
});

test('[R24] only a 200 with a JSON object is a config', (t) => {
  t.deepEqual(activeOf(came(200, '{"ncid":"n1"}')), { ncid: 'n1' });
  for (const text of ['', '[]', 'null', '"text"', '<html>', '{"ncid":'])
    t.is(typeof activeOf(came(200, text)), 'string', text);
  for (const status of [204, 302, 404, 500])
    t.is(typeof activeOf(came(status, '{"ncid":"n1"}')), 'string', `${status}`);
});

test('[R18] whatever a channel carries is heard, stamped when received, and only known fields are taken', (t) => {
  t.deepEqual(parsePayload('', 5), { change: { at: 5 } });
  t.deepEqual(parsePayload(' \n', 5), { change: { at: 5 } });
  t.deepEqual(parsePayload('{"ncid":"n1","intf":"eth0","up":false,"at":1,"wans":[]}', 5), {
    change: { ncid: 'n1', intf: 'eth0', up: false, at: 5 },
  });
  t.deepEqual(parsePayload('{"ncid":1}', 5), { change: { at: 5 }, fault: 'ncid is no text' });
  const known = new Set(['ncid', 'transID', 'intf', 'up', 'at']);
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const { change } = parsePayload(text, 5);
      return change.at === 5 && Object.keys(change).every((key) => known.has(key));
    }),
  );
});
