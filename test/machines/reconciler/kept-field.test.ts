/** A kept field of the config: the same machine as a leg, without a link. */
import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { leg as reconciler } from '../../../src/machines/reconciler/leg.ts';
import type { LegEvent } from '../../../src/machines/reconciler/leg-shapes.ts';

const intf = 'dhcp6.eth1.10.nameservers';
const address = '["fd00::53"]';
const keep = { path: ['dhcp6', 'eth1.10', 'nameservers'], value: ['fd00::53'], match: 'contains' } as const;
const input = { intf, label: 'DNS of Main', address, keep };

const labels = { intf, label: 'DNS of Main', address };

const changed: LegEvent = { type: 'CHANGED', at: 1_000 };
const seen = (ncid: string, isHeld: boolean): LegEvent => ({
  type: 'LEG_READ',
  ncid,
  addresses: isHeld ? [address] : [],
  at: 2_000,
});
const read = { type: 'reconciler.read_leg', params: { intf, keep } };
const settled = [changed, elapsed('settle')] as const;

test('[R24] a kept field that lost its value gets it in exactly the config that was read, and is read again', (t) => {
  given(reconciler, { input, events: [changed] })
    .when(elapsed('settle'))
    .then({ state: 'reading', effects: [read] })
    .when(seen('n1', false))
    .then({
      state: 'adding',
      effects: [{ type: 'reconciler.add_address', params: { intf, keep, address, ncid: 'n1' } }],
      context: { missing: true },
    })
    .when({ type: 'ADDED', ncid: 'n2', posted: [`${intf} ${address}`] })
    .then({ state: 'verifying', effects: [read] })
    .when(seen('n2', true))
    .then({
      state: 'checking',
      effects: [
        {
          type: 'reconciler.leg_recovered',
          params: { ...labels, ncid: 'n2', missing: true, alerted: false, tries: 0, eventAt: 1_000 },
        },
      ],
      context: { healed: 1, missing: undefined },
    });
  t.pass();
});

test('[R24] a kept field is whole by the config alone: no link is looked at', (t) => {
  given(reconciler, { input, events: [...settled, seen('n1', true), elapsed('secondLook')] })
    .when(seen('n1', true))
    .then({ state: 'whole', effects: [], timers: { resync: 240_000 } });
  t.pass();
});

test('[R24] a field without the object that holds it is absent, and is not created', (t) => {
  const events = [...settled, { type: 'LEG_ABSENT', ncid: 'n1' }, elapsed('secondLook')] as const;
  given(reconciler, { input, events })
    .when({ type: 'LEG_ABSENT', ncid: 'n1' })
    .then({
      state: 'absent',
      effects: [
        {
          type: 'alerts.raise',
          params: {
            name: 'reconciler.leg.leg_absent',
            severity: 'warning',
            text: `The router's config has no object for ${intf} (DNS of Main): so ${address} cannot be put there.`,
            labels,
          },
        },
      ],
    });
  t.pass();
});

test('[R24] a field of a network that is never touched is not written; a person learns why', (t) => {
  const name = 'it belongs to eth1.90, which is never touched';
  const refused: LegEvent = { type: 'LEG_REFUSED', ncid: 'n1', name };
  given(reconciler, { input, events: [...settled, refused, elapsed('secondLook')] })
    .when(refused)
    .then({
      state: 'refusedByName',
      effects: [
        {
          type: 'alerts.raise',
          params: {
            name: 'reconciler.leg.refused_by_name',
            severity: 'critical',
            text: `DNS of Main (${intf}) is not held to ${address}: ${name}. Take the field off the list.`,
            labels,
          },
        },
      ],
      context: { refusedName: name },
    });
  t.pass();
});

test('[R25] a kept field that loses a race for the ncid tries again, and gives up as a leg does', (t) => {
  const gaveUp = {
    name: 'reconciler.leg.gave_up',
    severity: 'critical',
    text: `DNS of Main (${intf}) lacks ${address} after 5 tries: another writer saved in between. Holdfast tries again at the next event or resync.`,
    labels,
  };
  const conflict: LegEvent = { type: 'CONFLICT', jitter: 0.5 };
  const lost = [conflict, elapsed('backOff'), seen('n1', false)] as const;
  given(reconciler, { input, events: [...settled, seen('n1', false), ...lost, ...lost, ...lost, ...lost] })
    .when(conflict)
    .then({
      state: 'gaveUp',
      effects: [{ type: 'alerts.raise', params: gaveUp }],
      context: { alerted: 'gave_up', conflicts: 5 },
    });
  t.pass();
});

test('[R24] a kept field that nobody has adopted is only observed', (t) => {
  given(reconciler, { input: { ...input, observes: true }, events: settled })
    .when(seen('n1', false))
    .then({
      state: 'observing',
      effects: [{ type: 'reconciler.would_add', params: labels }],
    });
  t.pass();
});
