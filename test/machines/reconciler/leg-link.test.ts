/** Configured, not applied: the config has the address and the link does not. */
import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { leg as reconciler } from '../../../src/machines/reconciler/leg.ts';
import { type LegEvent, legDefaults } from '../../../src/machines/reconciler/leg-shapes.ts';
import { reapply, reapplyDefaults } from '../../../src/machines/reconciler/reapply.ts';

const address = 'fd5e:21aa:90c4:20::1/64';
const labels = { intf: 'eth1.20', label: 'IoT', address };
const input = { ...labels, ...legDefaults };
const read = { type: 'reconciler.read_leg', params: { intf: 'eth1.20' } };
const look = { type: 'reconciler.read_link', params: { intf: 'eth1.20', address } };
const present: LegEvent = { type: 'LEG_READ', ncid: 'n1', addresses: [address], at: 0 };
const onLink = (at: number): LegEvent => ({ type: 'LINK_READ', present: true, at });
const offLink = (at: number): LegEvent => ({ type: 'LINK_READ', present: false, at });
const resync: LegEvent = { type: 'RESYNC', reason: 'start' };

const looking = [resync, present, elapsed('secondLook'), present] as const;
const overdue = [...looking, offLink(1_000), elapsed('linkSettle'), present] as const;

function alertWith(action: string) {
  return {
    type: 'alerts.raise',
    params: {
      name: 'reconciler.leg.not_applied',
      severity: 'critical',
      text: `IoT (eth1.20) has ${address} in the config and not on the link: its kernel lacks it. ${action}`,
      labels,
    },
  };
}
const SAVES =
  '`holdfast drill app-save --leg eth1.20` saves this network without its address, which Holdfast adds again';
const alert = alertWith(
  `Have the router apply this network again: ${SAVES}. ` +
    'An apply of the current config may skip what the router believes to be applied.',
);

test('[R26] an address in the config is looked for on the link, and may settle there for 10 s', (t) => {
  given(reconciler, { input, events: looking })
    .when(offLink(1_000))
    .then({ state: 'settlingLink', effects: [], timers: { linkSettle: 10_000 } })
    .when(elapsed('linkSettle'))
    .then({ state: 'reading', effects: [read] })
    .when(present)
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(onLink(11_000))
    .then({ state: 'whole', effects: [], context: { link: { state: 'present' }, linkLooks: 0 } });
  t.pass();
});

test('[R26] a link that lacks it for longer is a state of its own, told once, looked at again and again', (t) => {
  given(reconciler, { input, events: overdue })
    .when(offLink(11_000))
    .then({
      state: 'notApplied',
      effects: [alert],
      timers: { linkPause: 10_000 },
      context: { link: { state: 'missing', since: 1_000 }, linkAlerted: true },
    })
    .when(elapsed('linkPause'))
    .then({ state: 'reading', effects: [read] })
    .when(present)
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(offLink(51_000))
    .then({ state: 'notApplied', effects: [], timers: { linkPause: 10_000 } })
    .when({ type: 'CHANGED' })
    .then({ state: 'settling' })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read] })
    .when(present)
    .then({ state: 'checking' })
    .when(elapsed('secondLook'))
    .then({ state: 'reading', effects: [read] })
    .when(present)
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(onLink(60_000))
    .then({
      state: 'whole',
      effects: [{ type: 'reconciler.link_recovered', params: labels }],
      context: { linkAlerted: undefined, link: { state: 'present' } },
    });
  t.pass();
});

test('[R26] a link that lacks it for long is looked at each minute', (t) => {
  const again = (n: number) => [offLink(11_000 + n), elapsed('linkPause'), present] as const;
  const events = [...overdue, ...Array.from({ length: 30 }, (_, n) => again(n)).flat()];
  given(reconciler, { input, events })
    .when(offLink(90_000))
    .then({ state: 'notApplied', effects: [], timers: { linkPause: 60_000 } });
  t.pass();
});

test('[R26] a look that came too early for the settle time does not count', (t) => {
  given(reconciler, { input, events: overdue })
    .when(offLink(10_999))
    .then({ state: 'settlingLink', effects: [] });
  t.pass();
});

test('[R26] a link that could not be looked at is unknown, and no alert', (t) => {
  const failed = {
    type: 'effect.failed',
    effect: 'reconciler.read_link',
    code: 'HF_X',
    message: 'late',
  } as const;
  for (const [event, reason] of [
    [{ type: 'LINK_UNKNOWN', reason: 'the link is down' }, 'the link is down'],
    [failed, 'late'],
  ] as const) {
    given(reconciler, { input, events: overdue })
      .when(event)
      .then({ state: 'whole', effects: [], context: { link: { state: 'unknown', reason } } });
  }
  given(reconciler, { input, events: overdue })
    .when({ ...failed, effect: 'alerts.raise' })
    .then({ state: 'lookingAtLink', ignored: true });
  t.pass();
});

test('[R26] an address that was lost from the config is looked for anew once it is back', (t) => {
  const lost: LegEvent = { type: 'LEG_READ', ncid: 'n2', addresses: [], at: 60_000 };
  given(reconciler, { input, events: [...overdue, offLink(11_000), { type: 'CHANGED' }, elapsed('settle')] })
    .when(lost)
    .then({
      state: 'adding',
      effects: [{ type: 'reconciler.add_address', params: { intf: 'eth1.20', address, ncid: 'n2' } }],
      context: { link: undefined, linkLooks: 0, linkAlerted: true },
    });
  t.pass();
});

test('[R26] with the remedy reapply the router is asked for it once, and says so', (t) => {
  const asking = alertWith(
    'Holdfast has the router apply its current config again, at most once an hour. ' +
      `If it skips what it believes to be applied, ${SAVES}.`,
  );
  given(reconciler, { input: { ...input, remedy: 'reapply' }, events: overdue })
    .when(offLink(11_000))
    .then({
      state: 'notApplied',
      effects: [asking, { type: 'reconciler.request_reapply', params: { intf: 'eth1.20' } }],
    })
    .when(elapsed('linkPause'))
    .then({ state: 'reading', effects: [read] })
    .when(present)
    .then({ state: 'lookingAtLink', effects: [look] })
    .when(offLink(30_000))
    .then({ state: 'notApplied', effects: [] });
  t.pass();
});

const wanted = (intf: string) => ({ type: 'WANTED', intf, ...reapplyDefaults }) as const;
const apply = (...intfs: string[]) => ({ type: 'reconciler.reapply', params: { wanted: intfs } });

test('[R26] all legs together have the config applied at most once an hour', (t) => {
  given(reapply)
    .when(wanted('eth1.20'))
    .then({ state: 'applying', effects: [apply('eth1.20')] })
    .when(wanted('eth1.10'))
    .then({ state: 'applying', effects: [] })
    .when({ type: 'REAPPLIED' })
    .then({ state: 'resting', timers: { rest: 3_600_000 } })
    .when({ type: 'SETTLED', intf: 'eth1.20' })
    .then({ state: 'resting', effects: [] })
    .when(wanted('eth1.40'))
    .then({ state: 'resting', effects: [] })
    .when(elapsed('rest'))
    .then({ state: 'applying', effects: [apply('eth1.10', 'eth1.40')] });
  given(reapply, { events: [wanted('eth1.20'), { type: 'REAPPLIED' }, { type: 'SETTLED', intf: 'eth1.20' }] })
    .when(elapsed('rest'))
    .then({ state: 'idle', effects: [] });
  t.pass();
});

test('[R26] an apply that failed or was lost counts as the one of this hour', (t) => {
  for (const event of [
    { type: 'NOT_REAPPLIED', reason: 'no' },
    { type: 'effect.failed', effect: 'reconciler.reapply', code: 'HF_X', message: 'no' },
    { type: 'effect.lost', effect: 'reconciler.reapply' },
  ] as const) {
    given(reapply, { events: [wanted('eth1.20')] })
      .when(event)
      .then({ state: 'resting', timers: { rest: 3_600_000 } });
  }
  t.pass();
});

test('[R26] a pending transaction is waited for, and nothing is applied when nobody needs it any more', (t) => {
  given(reapply, { events: [wanted('eth1.20')] })
    .when({ type: 'PENDING' })
    .then({ state: 'waiting', timers: { wait: 5_000 } })
    .when(elapsed('wait'))
    .then({ state: 'applying', effects: [apply('eth1.20')] })
    .when({ type: 'PENDING' })
    .then({ state: 'waiting' })
    .when({ type: 'SETTLED', intf: 'eth1.20' })
    .then({ state: 'idle', timers: {} });
  t.pass();
});
