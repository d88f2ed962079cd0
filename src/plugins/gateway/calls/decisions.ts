import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import { isGoodKey } from '../../../machines/gateway/key-rules.ts';
import type { ConfineParams } from '../../../machines/gateway/key-shapes.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { DECISION_MS, type KeyDirectory, keyActor } from '../keys/virtual-keys.ts';
import { BurstLimiter } from './burst-limiter.ts';
import type { GatewayCall } from './call.ts';
import { callSchema } from './decision-facts.ts';
import type { HostStanding } from './host-standing.ts';
import type { KeyUsage } from './key-usage.ts';
import type { OpenCalls } from './open-calls.ts';

/** How many repeated calls wait for one decision at most: each holds its message in memory. */
const MOST_WAITING = 256;

const callMade = defineTopic(
  'gateway.call_made',
  z.object({ key: z.string(), call: callSchema }),
  'Somebody with a known key calls a server behind the gateway.',
);

/** What waits for the decision that has its correlation id. */
export interface Undecided {
  /** The decision is a refusal. @returns what became of it */
  refused(params: AnswerParams): CallEnded;
  /** The decision can't be made or recorded. */
  failed(error: unknown): void;
}

const isCall = (undecided: Undecided): undecided is GatewayCall => 'signature' in undecided;

/**
 * Asks the machines for decisions, and keeps what waits for them by correlation id.
 *
 * A client that repeats a refused call in a loop must not fill the disk. So beyond a burst, identical calls wait for up
 * to a second and share one decision, until one of them is admitted.
 */
export class Decisions {
  readonly #services: Services;
  readonly #usage: KeyUsage;
  /** An entry is cleared when it is taken, for the reason given in `PendingReplies`: a Map's old tables would keep the call alive. */
  readonly #undecided = new Map<string, { waiting: Undecided | undefined }>();
  readonly #repeated: BurstLimiter<GatewayCall>;
  readonly #standing: HostStanding | undefined;

  /** @param standing to the other hosts of a cluster; undefined without one */
  constructor(services: Services, usage: KeyUsage, standing?: HostStanding) {
    this.#services = services;
    this.#usage = usage;
    this.#standing = standing;
    this.#repeated = new BurstLimiter(services.clock, MOST_WAITING);
  }

  /** Has the key's machine decide about a call, which is then forwarded or refused. */
  decide(call: GatewayCall): void {
    const { signature } = call;
    call.isCounted = this.#repeated.knows(signature);
    if (!call.isCounted || this.#repeated.spend(signature)) {
      this.#ask(call);
      return;
    }
    this.#repeated.join(signature, call, (calls) => this.#askTogether(calls));
  }

  /** Whether a key is good for anything now: what is wrong with a request of another matters to nobody. */
  isGood({ id, presented }: Pick<AuthenticatedKey, 'id' | 'presented'>): boolean {
    const { actors, clock } = this.#services;
    const context = actors.get(keyActor, id)?.context;
    return context !== undefined && isGoodKey(context, presented, clock.now());
  }

  /** Waits for one decision. @param publish asks for it */
  expect(correlation: string, undecided: Undecided, publish: () => void): void {
    const { pendingReplies } = this.#services;
    this.#undecided.set(correlation, { waiting: undecided });
    pendingReplies.watch(correlation, DECISION_MS, (error) => {
      this.#forget(correlation)?.failed(error);
    });
    try {
      publish();
    } catch (error) {
      pendingReplies.fail(correlation, error);
    }
  }

  /** @returns the call that is admitted; undefined when it was given up meanwhile */
  admitted(correlation: string): GatewayCall | undefined {
    const call = this.#take(correlation);
    if (!call || !isCall(call)) return undefined;
    this.#repeated.forget(call.signature);
    for (const follower of call.followers) {
      follower.isCounted = false;
      this.#ask(follower);
    }
    return call;
  }

  /** Answers what is refused. @returns what became of it; undefined when it was given up meanwhile */
  refused(correlation: string, params: AnswerParams): CallEnded | undefined {
    const undecided = this.#take(correlation);
    if (undecided && isCall(undecided)) {
      if (!undecided.isCounted) this.#repeated.spend(undecided.signature);
      for (const follower of undecided.followers) follower.refused(params);
    }
    return undecided?.refused(params);
  }

  #ask(call: GatewayCall, count?: number): void {
    const { bus, clock } = this.#services;
    const { facts, key, exchange } = call;
    const { correlation } = exchange;
    this.expect(correlation, call, () => {
      if (facts.method !== 'unread') Object.assign(facts, this.#usage.enter(key.id, facts.method, exchange));
      if (count !== undefined) facts.count = count;
      if (this.#standing) facts.cluster = this.#standing.facts(key.id, facts.method);
      facts.at = clock.now();
      bus.publish(callMade, { key: key.id, call: facts }, { correlation });
    });
  }

  /** A refusal is for all of them. When the first is admitted, each of the others is decided for itself. */
  #askTogether(calls: readonly GatewayCall[]): void {
    const first = calls.find(({ exchange }) => !exchange.hasLeft) ?? calls[0];
    if (!first) return;
    first.followers = calls.filter((call) => call !== first);
    this.#ask(first, calls.length > 1 ? calls.length : undefined);
  }

  #take(correlation: string): Undecided | undefined {
    const undecided = this.#forget(correlation);
    if (undecided) this.#services.pendingReplies.release(correlation);
    return undecided;
  }

  #forget(correlation: string): Undecided | undefined {
    const entry = this.#undecided.get(correlation);
    if (!entry) return undefined;
    this.#undecided.delete(correlation);
    const { waiting } = entry;
    entry.waiting = undefined;
    return waiting;
  }
}

const GONE: CallEnded = { type: 'CALL_ENDED', outcome: 'gone', ms: 0 };

/**
 * The effects of a decision, and of a change of the key that calls were decided by. A crash loses a request with its
 * connection, so none is tried again: the key's actor hears that its call was lost.
 */
export function registerCallEffects(
  context: PluginContext<{
    readonly decisions: Decisions;
    readonly openCalls: OpenCalls;
    readonly keys: Pick<KeyDirectory, 'index'>;
  }>,
): void {
  context.route(callMade, keyActor, ({ payload: { key, call } }) => [{ key, event: call }]);
  context.effect<ForwardParams>(
    'gateway.forward',
    (params, { correlation, signal, actor }, { decisions, openCalls }) => {
      const call = decisions.admitted(correlation);
      // It was given up while it waited for its decision, and its upstream has not heard of it.
      if (!call) return { ...GONE, ...(params.cost !== undefined && { cost: params.cost }) };
      openCalls.endWith(signal);
      return openCalls.run(actor, call, params);
    },
    { onRecovery: 'fail', adapter: 'MCP upstreams', deadlineMs: Number.POSITIVE_INFINITY },
  );
  context.effect<AnswerParams>(
    'gateway.answer',
    (params, { correlation }, { decisions }) => decisions.refused(correlation, params) ?? GONE,
    { onRecovery: 'fail' },
  );
  context.effect<ConfineParams>(
    'gateway.confine',
    (params, { actor }, { openCalls, keys }) => {
      keys.index(actor.slice(keyActor.type.length + 1)); // another host may have rotated it
      openCalls.confine(actor, params);
    },
    { onRecovery: 'retry' },
  );
}
