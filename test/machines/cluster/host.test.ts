import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { type HostEvent, isMirrorBehind } from '../../../src/machines/cluster/host.ts';
import { hostActor } from '../../../src/plugins/cluster/actors.ts';

const { machine } = hostActor;
const input = { host: 'h2' };
const T = 1_000_000;
const heard: HostEvent = { type: 'HEARD', at: T, version: '1.2.3' };
const at = (presence: string, mirror = 'complete', link = 'connected') => ({ presence, mirror, link });
const raise = (name: string, severity: string, text: string, labels: object) => ({
  type: 'alerts.raise',
  params: { name: `cluster.${name}`, severity, text, labels: { host: 'h2', ...labels } },
});
const firing = { state: 'firing' };
const resolved = { state: 'resolved' };

test('[C13] a host that falls silent is an alert until it is heard again or forgotten; one that leaves is none', (t) => {
  const lost: HostEvent = { type: 'LOST', at: T + 10_000, silentMs: 10_000 };
  const text = 'Host h2 has been silent for 10 s; others take over what it held.';
  t.notThrows(() => {
    given(machine, { input, events: [heard] })
      .when(lost)
      .then({ state: at('lost'), effects: [raise('host_lost', 'warning', text, firing)] })
      .when({ ...heard, at: T + 20_000 })
      .then({
        state: at('heard'),
        context: { version: '1.2.3', since: T + 20_000 },
        effects: [raise('host_lost', 'info', 'Host h2 is heard again.', resolved)],
      });
    given(machine, { input, events: [heard, lost] })
      .when({ type: 'FORGOTTEN', at: T, by: 'ops' })
      .then({
        state: at('unheard'),
        effects: [raise('host_lost', 'info', 'Host h2 is not expected any more.', resolved)],
      });
    given(machine, { input, events: [heard] })
      .when({ type: 'LEFT', at: T })
      .then({ state: at('left'), effects: [] });
    given(machine, { input })
      .when(lost)
      .then({ state: at('unheard'), effects: [] });
  });
});

test('[C13] a stream that stays behind is an alert until it has every record', (t) => {
  t.notThrows(() =>
    given(machine, { input, events: [heard] })
      .when({ type: 'MIRROR_BEHIND', at: T, records: 12_000, ms: 61_000 })
      .then({
        state: at('heard', 'behind'),
        effects: [
          raise(
            'mirror_behind',
            'warning',
            '12000 records of host h2 are not on its stream yet, the oldest for 61 s: a host that takes over waits for them.',
            firing,
          ),
        ],
      })
      .when({ type: 'MIRROR_CAUGHT_UP', at: T })
      .then({
        state: at('heard'),
        effects: [raise('mirror_behind', 'info', 'The stream of host h2 has every record.', resolved)],
      }),
  );
});

test('[C13] a stream is behind with more than 10,000 records or 60 s', (t) => {
  t.false(isMirrorBehind({ records: 10_000, ms: 60_000 }));
  t.true(isMirrorBehind({ records: 10_001, ms: 0 }));
  t.true(isMirrorBehind({ records: 1, ms: 60_001 }));
});

test('[C13] a host that reaches no quorum raises an alert about itself until it does', (t) => {
  const text = 'Host h2 has reached no quorum of the NATS servers for 2 s: it holds nothing any more.';
  t.notThrows(() =>
    given(machine, { input })
      .when({ type: 'ISOLATED', at: T, silentMs: 2_100 })
      .then({
        state: at('unheard', 'complete', 'isolated'),
        effects: [raise('host_isolated', 'critical', text, firing)],
      })
      .when({ type: 'CONNECTED', at: T })
      .then({
        state: at('unheard'),
        effects: [raise('host_isolated', 'info', 'Host h2 reaches the NATS servers again.', resolved)],
      }),
  );
});

test('[C13] a host that has not read what the others said names that in the alert', (t) => {
  const text =
    'Host h2 has not read what the other hosts said in the last 6 s: its gateway refuses calls until it has.';
  t.notThrows(() =>
    given(machine, { input })
      .when({ type: 'ISOLATED', at: T, silentMs: 6_000, isBehind: true })
      .then({
        state: at('unheard', 'complete', 'isolated'),
        effects: [raise('host_isolated', 'critical', text, firing)],
      }),
  );
});

test('[C13] what an operator does with a host changes nothing of how it is seen, and is not ignored', (t) => {
  const acts: readonly HostEvent[] = [
    { type: 'DRAINED', at: T, by: 'ann' },
    { type: 'UNDRAINED', at: T, by: 'ann' },
    { type: 'ADOPTED', at: T, by: 'ann', records: 3 },
  ];
  for (const act of acts)
    t.notThrows(() =>
      given(machine, { input, events: [heard] })
        .when(act)
        .then({ state: at('heard'), effects: [], ignored: false }),
    );
});

test('[C13] a stream that was replaced and a version that is refused are alerts, each once', (t) => {
  t.notThrows(() =>
    given(machine, { input, events: [heard] })
      .when({ type: 'STREAM_REPLACED', at: T, to: '2', reason: 'it lost acknowledged records' })
      .then({
        state: at('heard'),
        context: { incarnation: '2' },
        effects: [
          raise(
            'stream_replaced',
            'warning',
            'The stream of host h2 was replaced and is filled again from its log: it lost acknowledged records.',
            {},
          ),
        ],
      })
      .when({ type: 'VERSION_REFUSED', at: T, version: '2.0.0', ownVersion: '1.2.3' })
      .then({
        state: at('heard'),
        effects: [
          raise(
            'version_refused',
            'warning',
            'Host h2 runs version 2.0.0, this one 1.2.3: this host takes nothing over until one of them is updated.',
            { version: '2.0.0', ownVersion: '1.2.3' },
          ),
        ],
      }),
  );
});
