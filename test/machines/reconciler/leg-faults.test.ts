/** Faults of the router that a leg outlasts: it cannot be read, it does not take the write, the name is refused. */
import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { leg as reconciler } from '../../../src/machines/reconciler/leg.ts';
import { type LegEvent, legDefaults } from '../../../src/machines/reconciler/leg-shapes.ts';

const address = 'fd5e:21aa:90c4:20::1/64';
const input = { intf: 'eth1.20', label: 'IoT', address, ...legDefaults };
const labels = { intf: 'eth1.20', label: 'IoT', address };
const read = { type: 'reconciler.read_leg', params: { intf: 'eth1.20' } };
const add = (ncid: string) => ({
  type: 'reconciler.add_address',
  params: { intf: 'eth1.20', address, ncid },
});

const resync: LegEvent = { type: 'RESYNC', reason: 'answers again' };
const changed: LegEvent = { type: 'CHANGED' };
const whole = (at = 0): LegEvent => ({ type: 'LEG_READ', ncid: 'n9', addresses: [address], at });
const missing = (ncid: string, at: number): LegEvent => ({ type: 'LEG_READ', ncid, addresses: [], at });
const gone = (at: number, jitter = 0.5): LegEvent => ({
  type: 'UNREACHABLE',
  reason: 'nothing listens there',
  jitter,
  at,
});
const refused: LegEvent = { type: 'REFUSED', errors: ['no'], jitter: 0.5 };
const guest: LegEvent = { type: 'LEG_REFUSED', ncid: 'n4', name: 'Guest' };

/** So many tries that find nobody. */
const away = (times: number) =>
  Array.from({ length: times }, (_, n) => [gone(n), elapsed('backOff')] as const).flat();
/** So many refused writes of the config n1, one every 5 s. */
const refusals = (times: number, from = 0) =>
  Array.from(
    { length: times },
    (_, n) =>
      [
        refused,
        missing('n1', from + 5_000 * n),
        elapsed('backOff'),
        missing('n1', from + 5_000 * (n + 1)),
      ] as const,
  ).flat();

test('[R25] a router that cannot be read is tried for ever: never given up, at first every 5 s, at last every 60 s', (t) => {
  for (const [times, backOff] of [
    [0, 5_000],
    [5, 5_000],
    [6, 10_000],
    [12, 20_000],
    [18, 40_000],
    [24, 60_000],
    [200, 60_000],
  ] as const) {
    given(reconciler, { input, events: [resync, ...away(times)] })
      .when(gone(7_000))
      .then({
        state: 'unreachable',
        timers: { backOff },
        effects: [],
        context: { tries: 0, failures: times + 1 },
      });
  }
  for (const [jitter, backOff] of [
    [0, 3_750],
    [1, 6_250],
  ] as const) {
    given(reconciler, { input, events: [resync] })
      .when(gone(0, jitter))
      .then({ state: 'unreachable', timers: { backOff } });
  }
  t.pass();
});

test('[R25] it is known since when the router cannot be read, and its first answer ends that', (t) => {
  const since = { kind: 'unreachable', since: 1_000 };
  given(reconciler, { input, events: [resync, gone(1_000), elapsed('backOff')] })
    .when(gone(6_000))
    .then({ state: 'unreachable', context: { trouble: since } })
    .when(resync)
    .then({ state: 'reading', effects: [read], timers: {}, context: { trouble: since } })
    .when(missing('n1', 7_000))
    .then({
      state: 'adding',
      effects: [add('n1')],
      context: { trouble: undefined, failures: 0, missingSince: 7_000 },
    });
  const late = { effect: 'reconciler.read_leg', code: 'HF_EFFECT_TIMEOUT', message: 'late' };
  given(reconciler, { input, events: [resync] })
    .when({ type: 'effect.failed', ...late })
    .then({ state: 'unreachable', context: { lastError: 'late', trouble: { kind: 'unreachable' } } });
  t.pass();
});

test('[R25] a write that is refused is tried for ever; a person is alerted once, after 60 s, and of its end', (t) => {
  given(reconciler, { input, events: [resync, missing('n1', 0), ...refusals(5)] })
    .when(refused)
    .then({ state: 'verifying', effects: [read] })
    .when(missing('n1', 25_000))
    .then({
      state: 'refused',
      effects: [],
      timers: { backOff: 5_000 },
      context: { tries: 0, failures: 6, trouble: { kind: 'refused', since: 0 }, alerted: undefined },
    });
  const alert = {
    type: 'alerts.raise',
    params: {
      name: 'reconciler.leg.write_refused',
      severity: 'critical',
      text:
        `IoT (eth1.20) has lacked ${address} for more than 60 s: the router does not take the write (no). ` +
        'Holdfast keeps trying, at least every 60 s.',
      labels,
    },
  };
  given(reconciler, { input, events: [resync, missing('n1', 0), ...refusals(12), refused] })
    .when(missing('n1', 60_000))
    .then({
      state: 'refused',
      effects: [alert],
      timers: { backOff: 20_000 },
      context: { alerted: 'write_refused' },
    })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n1', 80_000))
    .then({ state: 'adding', effects: [add('n1')] })
    .when(refused)
    .then({ state: 'verifying', effects: [read] })
    .when(missing('n1', 81_000))
    .then({ state: 'refused', effects: [] })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] })
    .when(whole())
    .then({
      effects: [
        {
          type: 'reconciler.leg_recovered',
          params: { ...labels, ncid: 'n9', missing: true, alerted: true, tries: 14 },
        },
      ],
      state: 'checking',
      context: { alerted: undefined, trouble: undefined, failures: 0, missingSince: undefined },
    });
  t.pass();
});

test('[R25] events of a refused apply do not hurry the next write; another config, or an operator, gets it at once', (t) => {
  const events = [resync, missing('n1', 0), refused, missing('n1', 100), changed, elapsed('settle')] as const;
  given(reconciler, { input, events })
    .when(missing('n1', 1_100))
    .then({ state: 'refused', effects: [], timers: { backOff: 4_000 } })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n1', 5_099))
    .then({ state: 'adding', effects: [add('n1')] });
  given(reconciler, { input, events })
    .when(missing('n2', 1_100))
    .then({ state: 'adding', effects: [add('n2')] });
  given(reconciler, { input, events: [...events, missing('n1', 1_100)] })
    .when(resync)
    .then({ state: 'reading', effects: [read] })
    .when(missing('n1', 1_200))
    .then({ state: 'adding', effects: [add('n1')] });
  t.pass();
});

test('[R24] a leg whose network is named Guest in the config is never written, told once, and looked at again', (t) => {
  const alert = {
    type: 'alerts.raise',
    params: {
      name: 'reconciler.leg.refused_by_name',
      severity: 'critical',
      text:
        "IoT (eth1.20) is named Guest in the router's config, and that network is never touched: " +
        `${address} is not added. Take the leg off the list, or give the network another name.`,
      labels,
    },
  };
  given(reconciler, { input, events: [changed, elapsed('settle')] })
    .when(guest)
    .then({
      state: 'checking',
      effects: [],
      timers: { secondLook: 1_000 },
      context: { refusedName: 'Guest' },
    })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(guest)
    .then({
      state: 'refusedByName',
      effects: [alert],
      timers: { resync: 240_000 },
      context: { refusedName: 'Guest', alerted: 'refused_by_name', lastNcid: 'n4' },
    })
    .when(elapsed('resync'))
    .then({ state: 'reading', effects: [read] })
    .when(guest)
    .then({ state: 'refusedByName', effects: [] })
    .when(changed)
    .then({ state: 'settling' })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n5', 9_000))
    .then({ state: 'adding', effects: [add('n5')], context: { refusedName: undefined } });
  // The name may have been given between the reading and the write.
  for (const events of [[], [refused]])
    given(reconciler, { input, events: [resync, missing('n1', 0), ...events] })
      .when(guest)
      .then({ state: 'checking', effects: [] })
      .when(elapsed('secondLook'))
      .then({ state: 'reading', effects: [read] })
      .when(guest)
      .then({ state: 'refusedByName', effects: [alert] });
  t.pass();
});

test('[R24] a network that was given its name back is written by the second look, not by the resync', (t) => {
  // The daemon publishes before it saves, so the first reading still has the old name.
  const events = [changed, elapsed('settle'), guest, elapsed('secondLook'), guest] as const;
  given(reconciler, { input, events })
    .when(changed)
    .then({ state: 'settling' })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read] })
    .when(guest)
    .then({ state: 'checking', effects: [], timers: { secondLook: 1_000 } })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n5', 9_000))
    .then({ state: 'adding', effects: [add('n5')], context: { refusedName: undefined } });
  t.pass();
});

test('[R26] an address that another save drops right after our write is added again at once', (t) => {
  const added: LegEvent = { type: 'ADDED', ncid: 'n2', posted: [] };
  const events = [resync, missing('n1', 0), added];
  for (const rounds of [1, 30]) {
    const drops = Array.from({ length: rounds - 1 }, (_, n) => [
      changed,
      missing(`d${n}`, 50),
      { ...added, ncid: `a${n}` },
    ]).flat();
    given(reconciler, { input, events: [...events, ...drops, changed] })
      .when(missing('n3', 50))
      .then({ state: 'adding', effects: [add('n3')], context: { failures: 0, trouble: undefined } });
  }
  // Its event may come a moment later; a router that changes its ncid by itself publishes none.
  given(reconciler, { input, events })
    .when(missing('n3', 50))
    .then({ state: 'backingOff', effects: [], timers: { backOff: 25 }, context: { failures: 0 } })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] });
  // The config of our own write, or the one before it: the router did not take the address, or the reading is stale.
  for (const ncid of ['n2', 'n1'])
    given(reconciler, { input, events: [...events, changed] })
      .when(missing(ncid, 50))
      .then({ state: 'refused', effects: [] });
  // After a refusal a new ncid proves no save of another: such a router may change it with each refused write.
  given(reconciler, { input, events: [...events, changed, missing('n3', 50), refused] })
    .when(missing('n4', 100))
    .then({ state: 'refused', effects: [] });
  t.pass();
});
