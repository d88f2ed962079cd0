import test from 'ava';
import { shownState } from '../../../src/core/host/history/shown.ts';
import type { ActorState } from '../../../src/core/kernel/actors/transition.ts';
import { headerLine, type PortableHeader, stateLine } from '../../../src/core/kernel/log/portable/format.ts';
import { redactedLines } from '../../../src/plugins/console/export/redacted-lines.ts';
import { CANARY } from './incident-page.ts';

const REF = `stranger.thing/https://ada:${CANARY}@example.org`;

/** An actor that waits for an effect, with a secret in each place where its state has a text. */
const WAITING: ActorState = {
  ...{ ref: REF, machine: 'thing', version: 1, value: 'waiting', done: false, seq: 7, at: 7_000 },
  context: { password: CANARY },
  timers: { patience: { id: '7.1', at: 9_000, armedAt: 7_000, correlation: `token=${CANARY}` } },
  effects: {
    '7.0': {
      type: 'http.post',
      params: { headers: { authorization: `Bearer ${CANARY}` }, body: `{"api_key":"${CANARY}"}`, tries: 3 },
      at: 7_000,
      correlation: `token=${CANARY}`,
    },
  },
};

test('[C15][R32] what an actor waits for is redacted where its state is shown', (t) => {
  const { effects, timers, context } = shownState(WAITING);
  t.notRegex(JSON.stringify({ effects, timers, context }), new RegExp(CANARY));
  t.deepEqual(effects['7.0'], {
    type: 'http.post',
    params: { headers: { authorization: '[redacted]' }, body: '{"api_key":"[redacted]"}', tries: 3 },
    at: 7_000,
    correlation: 'token=[redacted]',
  });
  t.like(timers.patience, { id: '7.1', at: 9_000, armedAt: 7_000 });
});

test('[C15][R32] an exported page has no secret in its header and the states before its first record', (t) => {
  const header: PortableHeader = {
    ...{ holdfast: 'log', format: 1, runtime: '0.2.0', exportedAt: 10_000, machines: {} },
    ...{ chainStart: '0'.repeat(64), range: { from: 8, to: 8 }, time: { from: 8_000, to: 8_000 } },
    ...{ complete: false, actors: [REF], correlation: `token=${CANARY}` },
  };
  const seen = { records: 0, redacted: [], actors: new Set<string>() };
  const lines = [...redactedLines([headerLine(header), stateLine(WAITING)], seen)];
  t.notRegex(lines.join(''), new RegExp(CANARY));
  const [first = '', second = ''] = lines;
  t.like(JSON.parse(first), { range: { from: 8, to: 8 }, correlation: 'token=[redacted]' });
  t.is(JSON.parse(second).state.ref, JSON.parse(first).actors[0], 'the same actor has the same name');
  t.deepEqual([...seen.actors], [REF], 'its machine is found by the name that it has');
});
