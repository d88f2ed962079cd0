import test from 'ava';
import fc from 'fast-check';
import { legsStatus } from '../../../src/plugins/reconciler/leg-status.ts';
import { describeLegRecord } from '../../../src/plugins/reconciler/words.ts';
import { machineSamples } from '../../machines/samples.ts';

const actor = (value: string, context: object) =>
  ({
    value,
    context: {
      intf: 'eth1.10',
      label: 'Main',
      address: 'fd00::1/64',
      healed: 2,
      conflicts: 1,
      tries: 3,
      ...context,
    },
    at: 1_767_225_600_000,
  }) as unknown as Parameters<typeof legsStatus>[0][number];

test('[R24] health says of each leg how it is, and when it was last looked at', (t) => {
  const one = (value: string, context: object) => (legsStatus([actor(value, context)]).legs as any)[0];
  t.deepEqual(one('whole', { lastNcid: 'n' }), {
    intf: 'eth1.10',
    label: 'Main',
    address: 'fd00::1/64',
    state: 'whole',
    checkedAt: '2026-01-01T00:00:00.000Z',
    healed: 2,
    conflicts: 1,
  });
  t.like(one('gaveUp', { missing: true, lastError: 'no' }), { state: 'gave up', tries: 3, lastError: 'no' });
  t.is(one('waiting', { missing: true }).state, 'waiting');
  t.is(one('absent', { missing: true }).state, 'absent');
  t.is(one('reading', {}).state, 'unread');
  for (const busy of ['settling', 'reading', 'checking', 'verifying', 'backingOff']) {
    t.is(one(busy, { lastNcid: 'n' }).state, 'whole');
    t.is(one(busy, { lastNcid: 'n', missing: true }).state, 'missing');
  }
});

test('[R24] health counts the listed legs, whole and all', (t) => {
  const states = [
    actor('whole', { lastNcid: 'n' }),
    actor('adding', { lastNcid: 'n', missing: true }),
    actor('released', { lastNcid: 'n' }),
  ];
  t.like(legsStatus(states), { whole: 1, of: 2 });
  t.false('ok' in legsStatus(states), 'a leg that is being healed is no fault');
  t.like(legsStatus([...states, actor('absent', {})]), {
    ok: false,
    reason: 'eth1.10 (Main) is not in the config',
  });
});

test('[R24] every record of a leg has words, or is routine, or speaks for itself', (t) => {
  const record = (event: object, rest: object = {}) =>
    describeLegRecord({ event, to: { value: 'x' }, effects: [], ...rest } as unknown as Parameters<
      typeof describeLegRecord
    >[0]);
  const events = machineSamples['reconciler-leg']!.events!;
  for (const event of events.filter(({ type }) => type !== 'LEG_READ')) t.not(record(event), '', event.type);
  t.is(record({ type: 'init' }), '');
  t.is(record({ type: 'effect.done' }), '');
  t.is(record({ type: 'xstate.after.settle.reconciler-leg.settling' }), '');
  t.is(record({ type: 'FROM_THE_FUTURE' }), undefined);
  t.is(record({ type: 'LEG_READ', ncid: 'n1', addresses: [] }), '');
  t.is(
    record(
      { type: 'LEG_READ', ncid: 'n1', addresses: [] },
      { to: { value: 'backingOff', context: { tries: 1 } } },
    ),
    'still lacks its address in ncid n1…',
  );
  const types = fc.constantFrom(...events.map(({ type }) => type));
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('ncid', 'leg', 'posted', 'errors'), fc.jsonValue()),
      types,
      (fields, type) => {
        record({ ...fields, type });
      },
    ),
  );
});
