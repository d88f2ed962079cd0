import test from 'ava';
import fc from 'fast-check';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import { diffContext } from '../../../src/core/kernel/json.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { routerConfig } from '../../../src/machines/router/config.ts';
import type {
  ApplyParams,
  ConfigContext,
  ConfigVersion,
  ReplyParams,
  VerifyParams,
} from '../../../src/machines/router/config-shapes.ts';
import { runs } from '../../support/runs.ts';

type Outcome = 'applied' | 'failed' | 'timed out, saved' | 'timed out, not saved' | 'overtaken';
type Move =
  | {
      readonly ask: 'save' | 'append' | 'commit' | 'revert' | 'reapply';
      id: number;
      ncid: 'current' | 'stale' | 'none' | 'ignored' | 'late';
    }
  | { readonly outcome: Outcome }
  | { readonly timer: true };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      ask: fc.constantFrom('save', 'append', 'append', 'append', 'commit', 'revert', 'reapply'),
      id: fc.constantFrom(1, 1, 1, 2, 3),
      ncid: fc.constantFrom('current', 'current', 'current', 'stale', 'none', 'ignored', 'late'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      outcome: fc.constantFrom<Outcome>(
        'applied',
        'applied',
        'applied',
        'failed',
        'timed out, saved',
        'timed out, not saved',
        'overtaken',
      ),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ timer: true as const }) },
);

/** A store, the effects under way and the armed timers around one machine. Throws where a promise is broken. */
class World {
  readonly #stepper = new MachineStepper(routerConfig);
  #step: Step = this.#stepper.initial({ queueLimit: 4 });
  store: ConfigVersion = { ncid: 'n0', fingerprint: 'fp_0' };
  /** The config that a revert must bring back, by transID. */
  readonly #restores = new Map<string, string>();
  #apply: ApplyParams | undefined;
  #verify: VerifyParams | undefined;
  readonly timers = new Set<string>();
  readonly #answers = new Map<string, number>();
  readonly #late = new Set<string>();
  #count = 0;

  constructor() {
    this.#send({ type: 'LOADED', ...this.store });
  }

  get context(): ConfigContext {
    return this.#step.context as ConfigContext;
  }

  get busy(): boolean {
    return this.#apply !== undefined || this.#verify !== undefined;
  }

  ask({ ask, id, ncid }: Extract<Move, { ask: string }>): void {
    this.#count += 1;
    const request = `r${this.#count}`;
    this.#answers.set(request, 0);
    if (ncid === 'late' && (ask === 'save' || ask === 'append')) this.#late.add(request);
    const from = { request, correlation: request, who: 'test' };
    this.#send({
      type: ask === 'reapply' ? 'APPLY_CURRENT' : 'SET',
      ...from,
      ...(ask !== 'save' && ask !== 'reapply' && { op: ask, transID: `t${id}` }),
      ...((ask === 'save' || ask === 'append') && { fingerprint: `fp_${this.#count}` }),
      ...(ncid === 'current' && { ncid: this.store.ncid }),
      ...(ncid === 'stale' && { ncid: 'old' }),
      // Whoever looked at the store for it saw another ncid, whatever the store has by now.
      ...(ncid === 'late' && { ncid: this.store.ncid, current: 'another' }),
      ...(ncid === 'ignored' && { ignoreNcid: true }),
    });
  }

  outcome(outcome: Outcome): void {
    const job = this.#apply;
    this.#apply = undefined;
    if (job) this.#send(this.#outcomeOf(job, outcome));
    else if (this.#verify) {
      const asked = this.#verify;
      this.#verify = undefined;
      this.#send(this.#found(asked));
    }
  }

  #outcomeOf(job: ApplyParams, outcome: Outcome): LogEvent {
    if (job.expected !== this.store.ncid) throw new Error('applies on another config than the stored one');
    this.#count += 1;
    switch (outcome) {
      case 'failed':
        return { type: 'APPLY_FAILED', errors: ['no'], code: 'HF_ROUTER_APPLY_FAILED', status: 500 };
      case 'overtaken':
        this.store = { ncid: `n${this.#count}`, fingerprint: `fp_x${this.#count}` };
        return { type: 'OVERTAKEN', ...this.store };
      case 'applied':
        this.#save(job);
        return { type: 'APPLIED', ...this.store, reapplied: [] };
      case 'timed out, saved':
        this.#save(job);
        return { type: 'effect.failed', effect: 'router.apply', message: 'late' };
      case 'timed out, not saved':
        return { type: 'effect.failed', effect: 'router.apply', message: 'late' };
    }
  }

  /** What the store says of an apply that ended without an answer. */
  #found({ op, expected, before, fingerprint, fault }: VerifyParams): LogEvent {
    const { store } = this;
    if (op !== 'reapply' && store.ncid !== expected && store.fingerprint === fingerprint)
      return { type: 'APPLIED', ...store, reapplied: [] };
    if (store.ncid !== expected || store.fingerprint !== before) return { type: 'OVERTAKEN', ...store };
    return { type: 'APPLY_FAILED', errors: [fault], code: 'HF_ROUTER_APPLY_FAILED', status: 500 };
  }

  timer(): void {
    const [timer] = this.timers;
    if (timer === undefined) return;
    this.timers.delete(timer);
    this.#send({ type: timer });
  }

  /** Lets everything under way come to its end, as it does when nothing fails any more. */
  drain(): void {
    for (let i = 0; this.busy || this.timers.size > 0; i += 1) {
      if (i > 1000) throw new Error(`does not come to rest: ${JSON.stringify(this.#step.value)}`);
      if (this.busy) this.outcome('applied');
      else this.timer();
    }
    for (const [request, answers] of this.#answers)
      if (answers !== 1) throw new Error(`${request} was answered ${answers} times`);
    if (JSON.stringify(this.#step.value) !== '{"free":"idle"}')
      throw new Error(`rests in ${JSON.stringify(this.#step.value)}`);
    if (this.context.queue.length > 0 || this.context.job || this.context.pending)
      throw new Error('something was left over');
  }

  #save(job: ApplyParams): void {
    if (job.op === 'reapply') return;
    if (job.op === 'append' && job.transID !== undefined && !this.#restores.has(job.transID))
      this.#restores.set(job.transID, this.store.fingerprint);
    if (job.op === 'revert' && this.#restores.get(job.transID ?? '') !== job.fingerprint)
      throw new Error('the revert restores another config than the one before the transaction');
    this.store = { ncid: `n${this.#count}`, fingerprint: job.fingerprint };
  }

  #send(event: LogEvent): void {
    const before = this.context;
    const from = this.#step.snapshot;
    this.#step = this.#stepper.next(from, event);
    diffContext(before, this.context); // throws unless the context is plain data
    for (const { type, params } of this.#step.effects) {
      const { timer } = (params ?? {}) as { timer?: string };
      if (type === 'timer.start' && timer) this.timers.add(timer);
      else if (type === 'timer.cancel' && timer) this.timers.delete(timer);
      else if (type === 'http.reply') this.#answered(params as unknown as ReplyParams);
      else if (type === 'router.verify') this.#verify = params as unknown as VerifyParams;
      else if (type === 'router.apply') {
        if (this.#apply) throw new Error('two applies at one time');
        this.#apply = params as unknown as ApplyParams;
      }
    }
    this.#check(event, before);
  }

  #answered({ to, status, body }: ReplyParams): void {
    if (to === '') return; // the revert at the end of a window, which nobody asked for
    this.#answers.set(to, (this.#answers.get(to) ?? 0) + 1);
    if (status === 200 && this.#late.has(to)) throw new Error('a request that came too late was carried out');
    if (status === 200 && body.ncid !== this.store.ncid)
      throw new Error('answered with an ncid that is not stored');
  }

  #check(event: LogEvent, before: ConfigContext): void {
    const { active, pending, last } = this.context;
    const [state] = Object.keys(this.#step.value);
    const isBusy = this.context.job !== undefined;
    if (active.ncid !== before.active.ncid && !['APPLIED', 'OVERTAKEN', 'LOADED'].includes(event.type))
      throw new Error(`${event.type} changed the ncid`);
    if (!isBusy && active.ncid !== this.store.ncid)
      throw new Error('thinks that another config is active than the stored one');
    if ((state === 'pending' || state === 'expired') !== (pending !== undefined))
      throw new Error('state and context differ');
    if (isBusy !== JSON.stringify(this.#step.value).includes('busy')) throw new Error('busy without a job');
    const armed = [...this.timers].some((timer) => timer.includes('.window.'));
    if (armed !== (state === 'pending')) throw new Error('the window is not the pending one');
    if (last !== before.last && last?.outcome === 'reverted') {
      if (this.store.fingerprint !== this.#restores.get(last.transID))
        throw new Error('reverted to something else');
    }
    if (last !== before.last && last) this.#restores.delete(last.transID);
  }
}

test('[R10] whatever comes in whatever order: one transaction at most, one answer each, ncids as promised', (t) => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      const world = new World();
      for (const next of moves) {
        if ('ask' in next) world.ask(next);
        else if ('outcome' in next) world.outcome(next.outcome);
        else world.timer();
      }
      world.drain();
    }),
    { numRuns: runs(2000), seed: 8837 },
  );
  t.pass();
});
