import test from 'ava';
import { MachineStepper } from '../../../src/core/kernel/actors/xstate.ts';
import { rejections } from '../../../src/machines/gateway/rejections.ts';

/** What a person hears of rejections that came one second apart. */
function alertsOf(...events: readonly Readonly<Record<string, string | true>>[]): unknown[] {
  const stepper = new MachineStepper(rejections);
  let step = stepper.initial();
  return events.flatMap((event, index) => {
    const rejected = { type: 'REJECTED', at: 1_000 * (index + 1), source: '192.0.2.1', path: '/mcp/' };
    step = stepper.next(step.snapshot, { ...rejected, ...event });
    return step.effects.filter(({ type }) => type === 'alerts.raise').map(({ params }) => params);
  });
}

for (const [what, event, name] of [
  ['a key in Authorization', { misplaced: 'virtual_key' }, 'gateway.key_only_in_authorization'],
  ['a key in another header', { misplaced: 'virtual_key', where: 'header x' }, 'gateway.key_misplaced'],
  ['a key in the query', { misplaced: 'virtual_key', where: 'query' }, 'gateway.key_in_query'],
  ['a key in the path', { misplaced: 'virtual_key', where: 'path' }, 'gateway.key_in_query'],
  ['the master key on an MCP route', { misplaced: 'master_key' }, 'gateway.master_key_presented'],
  [
    'the master key elsewhere on the REST API',
    { misplaced: 'master_key', rest: true, where: 'header x' },
    'gateway.master_key_misplaced',
  ],
] as const) {
  test(`[G9,G25] ${what} is told as that, once a minute, beside whatever rule refused`, (t) => {
    const rejected = { rule: 'unknown_key', ...event };
    t.like(alertsOf(rejected, rejected), { length: 1, 0: { name, severity: 'critical' } });
  });
}

test('[G9] a caller who only has no key, or an unknown one, is told to nobody', (t) => {
  t.deepEqual(alertsOf({ rule: 'no_key' }, { rule: 'unknown_key' }), []);
});
