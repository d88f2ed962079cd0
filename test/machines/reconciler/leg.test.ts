import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { Story } from '../../../src/core/host/testing/story.ts';
import { TIMER_START } from '../../../src/core/kernel/log/record.ts';
import { leg as reconciler } from '../../../src/machines/reconciler/leg.ts';
import { type LegEvent, legDefaults } from '../../../src/machines/reconciler/leg-shapes.ts';

const address = 'fd5e:21aa:90c4:20::1/64';
const input = { intf: 'eth1.20', label: 'IoT', address, ...legDefaults };
const labels = { intf: 'eth1.20', label: 'IoT', address };

const changed: LegEvent = { type: 'CHANGED', channel: 'router.iface_change_applied', at: 1_000 };
const whole = (ncid = 'n1', at = 2_000): LegEvent => ({
  type: 'LEG_READ',
  ncid,
  addresses: ['fd00::9/64', address],
  at,
});
const missing = (ncid = 'n1', at = 2_000): LegEvent => ({
  type: 'LEG_READ',
  ncid,
  addresses: ['fd00::9/64'],
  at,
});
const onLink = (at = 3_000): LegEvent => ({ type: 'LINK_READ', present: true, at });
const added: LegEvent = { type: 'ADDED', ncid: 'n2', posted: [`eth1.20 ${address}`] };
const conflict: LegEvent = { type: 'CONFLICT', jitter: 0.5 };
const pending: LegEvent = { type: 'PENDING' };
const resync: LegEvent = { type: 'RESYNC', reason: 'connected' };

const read = { type: 'reconciler.read_leg', params: { intf: 'eth1.20' } };
const add = (ncid = 'n1') => ({ type: 'reconciler.add_address', params: { intf: 'eth1.20', address, ncid } });
const look = { type: 'reconciler.read_link', params: { intf: 'eth1.20', address } };
const recovered = (details: object) => ({
  type: 'reconciler.leg_recovered',
  params: { ...labels, ncid: 'n2', missing: true, alerted: false, tries: 0, ...details },
});

const settled = [changed, elapsed('settle')] as const;
const adding = [...settled, missing()] as const;
const rest = { timers: { resync: 240_000 } };

/** So many lost races, each followed by its back-off and a reading that still lacks the address. */
const lost = (times: number) =>
  Array.from({ length: times }, () => [conflict, elapsed('backOff'), missing()] as const).flat();
const exhausted = [...adding, ...lost(4), conflict] as const;

test('[R24] an address that came back on a leg that is only observed was not added by Holdfast', (t) => {
  given(reconciler, { input: { ...input, observes: true }, events: [...settled, missing()] })
    .when(resync)
    .then({ state: 'reading', effects: [read] })
    .when(whole('n2'))
    .then({ state: 'checking', effects: [recovered({ missing: false })], context: { healed: 0 } });
  t.pass();
});

test('[R24] an event is left to settle for 25 ms, then the leg is read', (t) => {
  given(reconciler, { input })
    .when(changed)
    .then({ state: 'settling', timers: { settle: 25 }, context: { events: 1, eventAt: 1_000 } })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read], timers: {}, context: { due: 'secondLook' } });
  t.pass();
});

test('[R24] an event without any payload does', (t) => {
  given(reconciler, { input }).when({ type: 'CHANGED' }).then({ state: 'settling' });
  t.pass();
});

test('[R24] a burst settles 25 ms after its last event, but an endless one is cut', (t) => {
  given(reconciler, { input, events: [changed] })
    .when({ type: 'CHANGED', at: 1_010 })
    .then({ state: 'settling', timers: { settle: 25 }, context: { events: 2, eventAt: 1_000 } });
  const timersAfter = (events: number) => {
    const burst = Array.from({ length: events }, () => changed);
    const { step } = burst.reduce<Story>((story, event) => story.next(event), Story.begin(reconciler, input));
    return step.effects.filter(({ type }) => type === TIMER_START).length;
  };
  t.is(timersAfter(20), 1, 'the quiet time begins again');
  t.is(timersAfter(21), 0, 'it does no more');
});

test('[R24] an address that is present: nothing is posted, and a second look follows 1 s later', (t) => {
  given(reconciler, { input, events: settled })
    .when(whole())
    .then({ state: 'checking', timers: { secondLook: 1_000 } })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(whole('n2'))
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(onLink())
    .then({
      state: 'whole',
      effects: [],
      ...rest,
      context: { lastNcid: 'n2', events: 0, eventAt: undefined, healed: 0 },
    });
  t.pass();
});

test('[R24] an address that is missing is added to the very config that was read', (t) => {
  given(reconciler, { input, events: settled })
    .when(missing('n7'))
    .then({ state: 'adding', effects: [add('n7')], context: { missing: true, lastNcid: 'n7' } });
  t.pass();
});

test('[R24] a write is verified by reading again, and only then the leg is healed', (t) => {
  given(reconciler, { input, events: adding })
    .when(added)
    .then({ state: 'verifying', effects: [read], context: { missing: true, healed: 0 } })
    .when(whole('n2'))
    .then({
      state: 'checking',
      effects: [recovered({ eventAt: 1_000 })],
      context: { healed: 1, missing: undefined, eventAt: undefined, tries: 0 },
    });
  t.pass();
});

test('[R24] a stale first reading is found out by the second look', (t) => {
  given(reconciler, { input, events: [...settled, whole(), elapsed('secondLook')] })
    .when(missing('n2'))
    .then({ state: 'adding', effects: [add('n2')] })
    .when(added)
    .then({ state: 'verifying', effects: [read] })
    .when(whole('n2'))
    .then({ state: 'lookingAtLink', effects: [recovered({ eventAt: 1_000 }), look] });
  t.pass();
});

test('[R24] a leg is read at start, at every reconnect and every 240 s', (t) => {
  given(reconciler, { input })
    .when({ type: 'RESYNC', reason: 'start' })
    .then({ state: 'reading', effects: [read] })
    .when(whole())
    .then({ state: 'checking' })
    .when(resync)
    .then({ state: 'reading', effects: [read], timers: {} })
    .when(whole())
    .then({ state: 'checking' })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(whole())
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(onLink())
    .then({ state: 'whole', ...rest })
    .when(elapsed('resync'))
    .then({ state: 'reading', effects: [read] })
    .when(whole())
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(onLink())
    .then({ state: 'whole', ...rest });
  t.pass();
});

test('[R25] a lost race is read again after a back-off with the jitter that the outcome brought', (t) => {
  given(reconciler, { input, events: adding })
    .when(conflict)
    .then({ state: 'backingOff', timers: { backOff: 50 }, context: { tries: 1, conflicts: 1, jitter: 0.5 } })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n8'))
    .then({ state: 'adding', effects: [add('n8')] })
    .when({ type: 'CONFLICT', jitter: 0 })
    .then({ state: 'backingOff', timers: { backOff: 50 }, context: { tries: 2, conflicts: 2 } });
  t.pass();
});

test('[R25] an event does not cut a back-off short, and is not lost', (t) => {
  given(reconciler, { input, events: [...adding, conflict] })
    .when({ type: 'CHANGED', at: 2_000 })
    .then({ state: 'backingOff', timers: { backOff: 50 }, context: { due: 'reading', nextEventAt: 2_000 } })
    .when(elapsed('backOff'))
    .then({ state: 'reading', effects: [read] })
    .when(whole('n2'))
    .then({ state: 'settling', effects: [recovered({ tries: 1, eventAt: 1_000 })], timers: { settle: 25 } });
  t.pass();
});

test('[R25] five lost races raise an alert; somebody is saving, so it is tried again at the next event or after 5 s', (t) => {
  given(reconciler, { input, events: [...adding, ...lost(4)] })
    .when(conflict)
    .then({
      state: 'gaveUp',
      effects: [
        {
          type: 'alerts.raise',
          params: {
            name: 'reconciler.leg.gave_up',
            severity: 'critical',
            text:
              `IoT (eth1.20) lacks ${address} after 5 tries: another writer saved in between. ` +
              'Holdfast tries again at the next event or resync.',
            labels,
          },
        },
      ],
      timers: { wait: 5_000 },
      context: { tries: 5, conflicts: 5, alerted: 'gave_up' },
    });
  for (const event of [changed, resync]) {
    const after = event === changed ? [event, elapsed('settle')] : [event];
    given(reconciler, { input, events: [...exhausted, ...after] }).initially({
      state: 'reading',
      effects: [read],
      context: { tries: 0, alerted: 'gave_up' },
    });
  }
  given(reconciler, { input, events: exhausted })
    .when(elapsed('wait'))
    .then({ state: 'reading', effects: [read], context: { tries: 0 } });
  t.pass();
});

test('[R25] giving up again is not told again; that it is over is told', (t) => {
  given(reconciler, { input, events: [...exhausted, ...settled, missing(), ...lost(4)] })
    .when(conflict)
    .then({ state: 'gaveUp', effects: [] });
  given(reconciler, { input, events: [...exhausted, ...settled] })
    .when(whole('n2'))
    .then({
      state: 'checking',
      effects: [recovered({ alerted: true, eventAt: 1_000 })],
      context: { alerted: undefined, lastError: undefined },
    });
  t.pass();
});

test('[R25] while a transaction is pending the leg waits, however long, without spending tries', (t) => {
  const twenty = Array.from({ length: 20 }, () => [pending, elapsed('wait'), missing('n5')] as const).flat();
  given(reconciler, { input, events: [...adding, ...twenty] })
    .when(pending)
    .then({ state: 'waiting', timers: { wait: 5_000 }, context: { tries: 0, missing: true } })
    .when(elapsed('wait'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n6'))
    .then({ state: 'adding', effects: [add('n6')] })
    .when(added)
    .then({ state: 'verifying', effects: [read] });
  given(reconciler, { input, events: [...adding, pending] })
    .when(changed)
    .then({ state: 'settling', timers: { settle: 25 } });
  t.pass();
});

test('[R24] a refusal and a silence prove nothing: the leg is read, and what was applied is seen', (t) => {
  const answers: LegEvent[] = [
    { type: 'REFUSED', errors: ['Invalid ipv6 address x for y', 'and more'], jitter: 0.5 },
    { type: 'UNKNOWN', reason: 'no answer in 90 s', jitter: 0.5 },
    { type: 'effect.failed', effect: 'reconciler.add_address', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
    { type: 'effect.lost', effect: 'reconciler.add_address' },
  ];
  for (const answer of answers) {
    given(reconciler, { input, events: adding })
      .when(answer)
      .then({ state: 'verifying', effects: [read], context: { tries: 0 } })
      .when(whole('n2'))
      .then({ state: 'checking', effects: [recovered({ eventAt: 1_000 })] });
    given(reconciler, { input, events: [...adding, answer] })
      .when(missing())
      .then({ state: 'refused', context: { tries: 0, failures: 1 } });
  }
  given(reconciler, { input, events: [...adding, answers[0] as LegEvent] })
    .when(missing())
    .then({ state: 'refused', context: { lastError: 'Invalid ipv6 address x for y; and more' } });
  t.pass();
});

test('[R24] a write that was taken and is not there counts as a failed try', (t) => {
  given(reconciler, { input, events: [...adding, conflict, elapsed('backOff'), missing(), added] })
    .when(missing('n2'))
    .then({
      state: 'refused',
      timers: { backOff: 50 },
      context: {
        tries: 1,
        failures: 1,
        lastError: 'the router accepted the write, but the address is still missing',
      },
    });
  t.pass();
});

test('[R24] an event that comes while the router is asked gets a reading of its own', (t) => {
  given(reconciler, { input, events: settled })
    .when({ type: 'CHANGED', at: 2_000 })
    .then({ state: 'reading', context: { due: 'reading', nextEventAt: 2_000 } })
    .when(whole())
    .then({ state: 'settling', timers: { settle: 25 }, context: { eventAt: 2_000, due: undefined } })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read], context: { due: 'secondLook' } });
  for (const event of [changed, resync]) {
    given(reconciler, { input, events: [...adding, event, added] })
      .when(whole('n2'))
      .then({ state: 'settling', effects: [recovered({ eventAt: 1_000 })] });
    given(reconciler, { input, events: [...adding, added, event] })
      .when(whole('n2'))
      .then({ state: 'settling', effects: [recovered({ eventAt: 1_000 })] });
  }
  t.pass();
});

test('[R24] a reconnect ends a back-off at once', (t) => {
  given(reconciler, { input, events: [...adding, conflict] })
    .when(resync)
    .then({ state: 'reading', effects: [read], timers: {}, context: { tries: 0 } });
  t.pass();
});

test('[R24] an interface that the config lacks is never made up: it is told after a second look', (t) => {
  const absent: LegEvent = { type: 'LEG_ABSENT', ncid: 'n3' };
  const told = {
    type: 'alerts.raise',
    params: {
      name: 'reconciler.leg.leg_absent',
      severity: 'warning',
      text: `The router's config has no interface eth1.20 (IoT): so ${address} cannot be added.`,
      labels,
    },
  };
  given(reconciler, { input, events: settled })
    .when(absent)
    .then({ state: 'checking', timers: { secondLook: 1_000 } })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(absent)
    .then({ state: 'absent', effects: [told], ...rest, context: { lastNcid: 'n3', alerted: 'leg_absent' } })
    .when(elapsed('resync'))
    .then({ state: 'reading', effects: [read] })
    .when(absent)
    .then({ state: 'absent', effects: [] })
    .when(changed)
    .then({ state: 'settling' })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read] })
    .when(missing('n4'))
    .then({ state: 'adding', effects: [add('n4')] });
  given(reconciler, { input, events: [...settled, changed] })
    .when(absent)
    .then({ state: 'settling' });
  t.pass();
});

test('[R24] outcomes of other effects do not pass for the router’s', (t) => {
  const failed = {
    type: 'effect.failed',
    effect: 'alerts.raise',
    code: 'HF_INTERNAL',
    message: 'no',
  } as const;
  const lostAlert = { type: 'effect.lost', effect: 'alerts.raise' } as const;
  for (const event of [failed, lostAlert]) {
    given(reconciler, { input, events: settled }).when(event).then({ state: 'reading', ignored: true });
    given(reconciler, { input, events: adding }).when(event).then({ state: 'adding', ignored: true });
  }
  t.pass();
});

test('[R24] a changed setting reaches a leg in any state', (t) => {
  const leg = { ...input, label: 'Things', address: 'fd5e:21aa:90c4:21::1/64', settleMs: 50 };
  const configure: LegEvent = { type: 'CONFIGURE', leg };
  const context = { label: 'Things', address: leg.address, settleMs: 50 };
  const resting = [[], [resync, whole()], [...adding, pending], exhausted] as const;
  for (const events of resting) {
    given(reconciler, { input, events })
      .when(configure)
      .then({ state: 'reading', effects: [read], context });
  }
  given(reconciler, { input, events: [changed] })
    .when(configure)
    .then({ state: 'settling', context });
  for (const [events, state] of [
    [settled, 'reading'],
    [adding, 'adding'],
    [[...adding, added], 'verifying'],
  ] as const) {
    given(reconciler, { input, events })
      .when(configure)
      .then({ state, context: { ...context, due: 'reading' } });
  }
  t.pass();
});

test('[R24] a leg that is no longer listed is let go, and can be taken up again', (t) => {
  for (const events of [[], settled, adding, exhausted, [...adding, pending]] as const) {
    given(reconciler, { input, events })
      .when({ type: 'RELEASE' })
      .then({ state: 'released', timers: {} })
      .when(changed)
      .then({ state: 'released' })
      .when(resync)
      .then({ state: 'released' })
      .when({ type: 'CONFIGURE', leg: input })
      .then({ state: 'reading', effects: [read] });
  }
  t.pass();
});

test('the machine starts without an input', (t) => {
  given(reconciler).initially({ state: 'unread', timers: {}, context: { ...legDefaults, intf: '' } });
  t.pass();
});
