import test from 'ava';
import type { ActorState } from '../../../../src/core/kernel/actors/transition.ts';
import { MachineStepper } from '../../../../src/core/kernel/actors/xstate.ts';
import { CLOCK, type LogEvent } from '../../../../src/core/kernel/log/record.ts';
import { routerConfig } from '../../../../src/machines/router/config.ts';
import { routerChecks } from '../../../../src/plugins/router/embedded/checks.ts';
import {
  CONFIG_ACTOR,
  pendingTransaction,
} from '../../../../src/plugins/router/embedded/pending-transaction.ts';
import { tempDir } from '../../../support/temp.ts';

const NOW = 1_700_000_000_000;
const WINDOW = 'xstate.after.window.router-config.pending';
const opened: LogEvent[] = [
  { type: 'LOADED', ncid: 'n0', fingerprint: 'fp_a' },
  {
    ...{ type: 'SET', request: 'r1', correlation: 'r1', who: 'app', ncid: 'n0', fingerprint: 'fp_b' },
    ...{ op: 'append', transID: 't1' },
  },
  { type: 'APPLIED', ncid: 'n1', fingerprint: 'fp_b', reapplied: [] },
];
const failedRevert: LogEvent[] = [
  { type: WINDOW },
  { type: 'APPLY_FAILED', errors: ['no route'], code: 'HF_ROUTER_APPLY_FAILED', status: 500 },
];

/** The state of the config after these events; its window ends at `deadline`, where it has one. */
function stateAfter(events: readonly LogEvent[], deadline?: number): ActorState {
  const stepper = new MachineStepper(routerConfig);
  let step = stepper.initial({});
  for (const event of events) step = stepper.next(step.snapshot, event);
  const window = { id: '3.0', at: deadline ?? 0, armedAt: NOW, correlation: 'r1' };
  return {
    ...{ ref: CONFIG_ACTOR, machine: 'router-config', version: 1, done: false, seq: 3, at: NOW, effects: {} },
    value: step.value,
    context: step.context as ActorState['context'],
    timers: deadline === undefined ? {} : { [WINDOW]: window },
  };
}

test('[R40] a pending transaction has its owner, its deadline and the seconds that are left', (t) => {
  t.like(pendingTransaction(stateAfter(opened, NOW + 30_500), NOW), {
    transID: 't1',
    who: 'app',
    deadline: new Date(NOW + 30_500).toISOString(),
    secondsLeft: 31,
  });
  t.is(pendingTransaction(stateAfter(opened.slice(0, 1)), NOW), undefined);
});

test('[R40,C3] however the clock is set, what is left of a transaction is what has not passed', (t) => {
  const YEAR = 365 * 86_400_000;
  const state = stateAfter(opened, NOW + 120_000);
  const clock = (...byMs: number[]): ActorState => ({
    ...state,
    ref: CLOCK.actor,
    context: { jumps: byMs.map((by) => ({ after: 4, byMs: by })) },
  });
  const seconds = (now: number, jumps: ActorState | undefined) =>
    pendingTransaction(state, now, jumps)?.secondsLeft;
  t.is(seconds(NOW + 20_000 + YEAR, clock(YEAR)), 100);
  t.is(seconds(NOW + 20_000 - YEAR, clock(-YEAR)), 100);
  t.is(seconds(NOW + 20_000, clock(YEAR, -YEAR)), 100);
  t.is(seconds(NOW - YEAR, undefined), 120, 'never more than its window, also before the jump is found');
});

test('[R40] while its revert is under way a transaction is no fault, and is one once the revert has failed', (t) => {
  const underWay = pendingTransaction(stateAfter([...opened, { type: WINDOW }]), NOW);
  t.like(underWay, { transID: 't1', reverting: true, secondsLeft: 0 });
  t.is(underWay?.ok, undefined);
  const stuck = pendingTransaction(stateAfter([...opened, ...failedRevert]), NOW);
  t.like(stuck, { transID: 't1', reverting: true, ok: false });
  t.regex(stuck?.reason ?? '', /its revert failed and is tried again/);
});

test('[R40] doctor says that none is pending only where the router reported none', async (t) => {
  const check = routerChecks({ redisUrl: undefined }).find(({ name }) => name === 'router.transaction');
  const routerUp = { router: { url: 'http://127.0.0.1:1' } };
  const found = async (transaction: unknown, surfaces: Record<string, { url: string }> = routerUp) => {
    const facts = { ...(transaction !== undefined && { transaction }) };
    const { signal } = new AbortController();
    return check?.run({ dataDir: tempDir(t), signal, facts, running: { surfaces, facts } });
  };
  const unknown = { state: 'warn', found: 'it is unknown whether a transaction is pending' };
  t.like(await found(undefined, {}), unknown, 'the router did not start');
  t.like(await found({ error: 'Error: no log' }), unknown, 'its report throws');
  const whole = { transID: 't1', who: 'app', secondsLeft: 9, text: '' };
  t.like(await found(whole), {
    state: 'warn',
    found: 't1 by app is pending, 9 s left; plain writes are refused',
  });
  for (const part of ['transID', 'who', 'secondsLeft']) {
    t.like(await found({ ...whole, [part]: null }), unknown, part);
  }
});
