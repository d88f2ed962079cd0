import test from 'ava';
import fc from 'fast-check';
import { legsCheck, legsStatus } from '../../../src/plugins/reconciler/leg-status.ts';
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
      failures: 0,
      ...context,
    },
    at: 1_767_225_600_000,
  }) as unknown as Parameters<typeof legsStatus>[0][number];

const present = { lastNcid: 'n', link: { state: 'present' } };
const one = (value: string, context: object) => (legsStatus([actor(value, context)]).legs as any)[0];

test('[R24] health says of each leg how it is, and when it was last looked at', (t) => {
  t.deepEqual(one('whole', present), {
    intf: 'eth1.10',
    label: 'Main',
    address: 'fd00::1/64',
    state: 'whole',
    link: 'present',
    checkedAt: '2026-01-01T00:00:00.000Z',
    healed: 2,
    conflicts: 1,
  });
  t.like(one('gaveUp', { missing: true, lastError: 'no' }), { state: 'gave up', tries: 3, lastError: 'no' });
  t.is(one('waiting', { missing: true }).state, 'waiting');
  t.is(one('absent', { missing: true }).state, 'absent');
  t.is(one('reading', {}).state, 'unread');
  for (const busy of ['settling', 'reading', 'checking', 'verifying', 'backingOff', 'lookingAtLink']) {
    t.is(one(busy, present).state, 'whole');
    t.is(one(busy, { lastNcid: 'n', missing: true }).state, 'missing');
  }
});

test('[R25] a router that gives or takes nothing is said of each leg, with the time since when', (t) => {
  const since = Date.UTC(2026, 0, 1, 0, 1);
  for (const kind of ['unreachable', 'refused'] as const) {
    const context = { lastNcid: 'n', missing: true, trouble: { kind, since }, failures: 4, lastError: 'no' };
    t.like(one('reading', context), {
      state: kind,
      since: '2026-01-01T00:01:00.000Z',
      tries: 7,
      lastError: 'no',
    });
    t.like(legsStatus([actor('reading', context)]), { ok: false, whole: 0 });
  }
  t.regex(
    String(legsStatus([actor('unreachable', { trouble: { kind: 'unreachable' } })]).reason),
    /eth1\.10 \(Main\) cannot be read/,
  );
});

test('[R26] whole is only said of a leg whose link was seen to have the address', (t) => {
  const link = (state: string, more: object = {}) => ({ lastNcid: 'n', link: { state, ...more } });
  t.like(one('lookingAtLink', { lastNcid: 'n' }), { state: 'configured', link: 'unknown' });
  const unknown = link('unknown', { reason: 'the link is down' });
  t.like(one('whole', unknown), { state: 'configured', link: 'unknown', linkReason: 'the link is down' });
  t.like(legsStatus([actor('whole', unknown)]), { whole: 0, configured: 1, of: 1 });
  t.false('ok' in legsStatus([actor('whole', unknown)]), 'what is not known is no fault');
  t.is(one('settlingLink', link('missing', { since: 0 })).state, 'configured');
  const lacking = { ...link('missing', { since: 0 }), linkAlerted: true };
  for (const value of ['notApplied', 'reading', 'settlingLink', 'lookingAtLink']) {
    t.like(one(value, lacking), { state: 'configured, not applied', since: '1970-01-01T00:00:00.000Z' });
  }
  t.like(legsStatus([actor('notApplied', lacking)]), { ok: false, whole: 0, configured: 0 });
  t.like(one('refusedByName', { ...present, refusedName: 'Guest' }), {
    state: 'refused by name',
    name: 'Guest',
  });
});

test('[R26] doctor names the worst, says what to do, and says ok of nothing that was not looked at', (t) => {
  const check = (...legs: [value: string, context: object][]) => {
    const facts = { reconciler: JSON.parse(JSON.stringify(legsStatus(legs.map((leg) => actor(...leg))))) };
    return legsCheck({ running: { facts } } as unknown as Parameters<typeof legsCheck>[0]);
  };
  const unknown = { lastNcid: 'n', link: { state: 'unknown', reason: 'the link is down' } };
  const lacking = { lastNcid: 'n', link: { state: 'missing', since: 0 }, linkAlerted: true };
  t.is(check(['whole', present]).state, 'ok');
  t.like(check(['whole', present], ['whole', unknown]), {
    state: 'unknown',
    found: 'Main (eth1.10) configured, its link is unknown: the link is down',
  });
  t.is(check(['whole', unknown], ['waiting', { missing: true }]).state, 'warn');
  const found = check(['whole', present], ['notApplied', lacking]);
  t.is(found.state, 'fail');
  t.regex(found.found, /configured, not applied, since 1970/);
  t.regex(found.remedy ?? '', /holdfast drill app-save --leg/);
  for (const trouble of ['unreachable', 'refused'])
    t.is(check(['whole', present], ['reading', { trouble: { kind: trouble } }]).state, 'fail');
  t.is(check(['refusedByName', { refusedName: 'Guest' }]).state, 'fail');
  t.is(legsCheck({} as unknown as Parameters<typeof legsCheck>[0]).state, 'warn');
});

test('[R24,R26] a kept field is whole by the config alone, and is counted and named beside the legs', (t) => {
  const path = 'dhcp6.eth1.10.nameservers';
  const keep = { path: ['dhcp6', 'eth1.10', 'nameservers'], value: ['fd00::53'], match: 'contains' };
  const field = (value: string, context: object) =>
    actor(value, { intf: path, label: 'DNS', address: '["fd00::53"]', keep, lastNcid: 'n', ...context });
  const of = (snapshot: ReturnType<typeof actor>) => legsStatus([actor('whole', present), snapshot]);
  const check = (snapshot: ReturnType<typeof actor>) => {
    const facts = { reconciler: JSON.parse(JSON.stringify(of(snapshot))) };
    return legsCheck({ running: { facts } } as unknown as Parameters<typeof legsCheck>[0]);
  };
  const whole = field('whole', {});
  t.like(of(whole), { whole: 2, of: 2, text: '1 of 1 legs whole; 1 of 1 kept fields whole' });
  t.is(of(whole).ok, undefined);
  t.like(check(whole), { state: 'ok' });
  t.regex(check(whole).found, /all 1 have their address.*; all 1 kept fields have their value/);
  const refused = field('refusedByName', { refusedName: 'it belongs to eth1.90, which is never touched' });
  t.like(of(refused), { ok: false, reason: `${path} (DNS) may not be held`, whole: 1, of: 2 });
  t.is(check(refused).found, `DNS (${path}) refused by name, it belongs to eth1.90, which is never touched`);
  t.is(of(field('absent', {})).reason, `${path} (DNS) has no place in the config`);
  t.is(check(field('waiting', { missing: true })).state, 'warn');
});

test('[R26] status says how many legs are whole, and of each other leg how it is and why', (t) => {
  const text = (...legs: [value: string, context: object][]) =>
    legsStatus(legs.map((leg) => actor(...leg))).text;
  const unknown = { lastNcid: 'n', link: { state: 'unknown', reason: 'the link is down' } };
  const lacking = { lastNcid: 'n', link: { state: 'missing', since: 0 }, linkAlerted: true };
  const since = Date.UTC(2026, 0, 1, 0, 1);
  const trouble = (kind: string) => ({
    lastNcid: 'n',
    missing: true,
    trouble: { kind, since },
    lastError: 'no',
  });
  t.is(text(['whole', present], ['whole', present]), '2 of 2 legs whole');
  t.is(
    text(['lookingAtLink', { lastNcid: 'n' }]),
    '0 of 1 legs whole; Main (eth1.10) configured, its link is unknown',
  );
  t.is(
    text(['whole', present], ['whole', unknown], ['notApplied', lacking]),
    '1 of 3 legs whole; Main (eth1.10) configured, its link is unknown: the link is down; ' +
      'Main (eth1.10) configured, not applied, since 1970-01-01T00:00:00.000Z',
  );
  for (const kind of ['unreachable', 'refused'])
    t.is(
      text(['reading', trouble(kind)]),
      `0 of 1 legs whole; Main (eth1.10) ${kind}, since 2026-01-01T00:01:00.000Z, no`,
    );
  t.is(
    text(['refusedByName', { ...present, refusedName: 'Guest' }]),
    '0 of 1 legs whole; Main (eth1.10) refused by name, its name is Guest',
  );
});

test('[R24] health counts the listed legs, whole and all', (t) => {
  const states = [
    actor('whole', present),
    actor('adding', { lastNcid: 'n', missing: true }),
    actor('released', present),
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
  for (const event of events.filter(
    ({ type, ...event }) => type !== 'LEG_READ' && !('present' in event && event.present),
  ))
    t.not(record(event), '', event.type);
  t.is(record({ type: 'init' }), '');
  t.is(record({ type: 'effect.done' }), '');
  t.is(record({ type: 'xstate.after.settle.reconciler-leg.settling' }), 'is read: the changes have settled');
  t.is(record({ type: 'FROM_THE_FUTURE' }), undefined);
  t.is(record({ type: 'LEG_READ', ncid: 'n1', addresses: ['fd00::1/64'] }), 'has its address in ncid n1…');
  t.is(
    record(
      { type: 'LEG_READ', ncid: 'n1', addresses: [] },
      { to: { value: 'refused', context: { missing: true } } },
    ),
    'still lacks its address in ncid n1…',
  );
  t.is(
    record({ type: 'LEG_READ', ncid: 'n1', addresses: [] }, { to: { value: 'refused' } }),
    'still lacks its address in ncid n1…',
    'as before: the context did not change',
  );
  const odd = { toString: 0 };
  for (const type of ['ADDED', 'REFUSED', 'CONFIGURE', 'LEG_ABSENT'])
    t.regex(record({ type, ncid: odd, posted: [odd], errors: [odd], leg: { address: odd } }) ?? '', /\?/);
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
