import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { peerOf, strangerBudget } from '../../../core/host/http/request-budget.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { BucketSize } from '../../../core/host/token-bucket.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import type { AnswerParams, CallEnded } from '../../../machines/gateway/call-shapes.ts';
import { type RejectionEvent, rejections } from '../../../machines/gateway/rejections.ts';
import { IN_AUTHORIZATION } from '../keys/misplaced-keys.ts';
import { describeGatewayRecord } from '../words.ts';
import { BurstLimiter } from './burst-limiter.ts';
import { misplacedSchema } from './decision-facts.ts';
import type { Decisions } from './decisions.ts';

/** The one actor for callers without a key. */
const rejectionsActor = defineActor({
  type: 'gateway.rejections',
  machine: rejections,
  version: 1,
  describe: describeGatewayRecord,
});
const ALL_CALLERS = 'all';

const rejected = z.object({
  at: z.number(),
  rule: z.enum([
    'no_key',
    'malformed_key',
    'unknown_key',
    'key_only_in_authorization',
    'master_key_presented',
    'master_key_wanted',
    'virtual_key_wanted',
    'key_in_query',
    'not_read',
    'let_in',
  ]),
  source: z.string(),
  path: z.string(),
  /** A key that stood where it may leak. */
  misplaced: misplacedSchema.exactOptional(),
  /** On a path of the REST API. */
  rest: z.literal(true).exactOptional(),
  /** How many requests this is about; absent: 1. */
  count: z.int().min(1).exactOptional(),
});

const callRejected = defineTopic(
  'gateway.call_rejected',
  rejected,
  'Somebody without a known key called the gateway.',
);

/** A rejected request: why, from where, and what it had where no key belongs. */
export type Rejection = Omit<z.output<typeof rejected>, 'at'>;
type Rule = AnswerParams['rule'];

/** Anybody can bring these about. The others need a key, of which somebody should always hear when it stands where it may leak. */
const OF_STRANGERS: ReadonlySet<Rejection['rule']> = new Set(['no_key', 'malformed_key', 'unknown_key']);

/** Declares the actor that rejects callers without a key. */
export function registerRejections(context: PluginContext<unknown>): void {
  context.actor(rejectionsActor);
  context.route(callRejected, rejectionsActor, ({ payload }) => [
    { key: ALL_CALLERS, event: rejectionEvent(payload) },
  ]);
}

/**
 * A key in Authorization comes to the machine without a place where that alone is what is wrong: it has an alert of its
 * own for that. It comes with its place when the request was only searched, and on the REST API, where keys belong in
 * that header and this is another one beside it.
 */
function rejectionEvent({ misplaced, ...facts }: z.output<typeof rejected>): RejectionEvent {
  if (!misplaced) return { type: 'REJECTED', ...facts };
  const { key, where } = misplaced;
  const isOnlyThere = where === IN_AUTHORIZATION && facts.rule !== 'not_read' && !facts.rest;
  return { type: 'REJECTED', ...facts, misplaced: key, ...(!isOnlyThere && { where }) };
}

/**
 * Rejects callers without a key, and records each of them. A stranger must not fill the disk: one that goes on waits for
 * up to a second, and is one record with all that came from the same source by the same rule meanwhile.
 */
export class RejectionLimiter {
  readonly #services: Services;
  readonly #decisions: Decisions;
  readonly #bursts: BurstLimiter<PromiseWithResolvers<Rule>>;
  readonly #refusalOf: ReturnType<typeof strangerBudget>;

  constructor(services: Services, decisions: Decisions, budget: BucketSize) {
    this.#services = services;
    this.#refusalOf = strangerBudget('gateway', budget, services);
    this.#decisions = decisions;
    this.#bursts = new BurstLimiter(services.clock);
  }

  /**
   * @param correlation of the request
   * @param status that it is sent, or was already; undefined when its client left before
   * @returns the rule that decided, once it is durable
   * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
   * @throws HF_HTTP_BUDGET its peer was rejected too often, so nothing is recorded
   */
  async reject(rejection: Rejection, correlation: string, status: number | undefined): Promise<Rule> {
    const { source, rule, misplaced } = rejection;
    const address = source === '' ? undefined : source;
    const refusal = OF_STRANGERS.has(rule) ? this.#refusalOf(address) : undefined;
    if (refusal) throw refusal;
    // By peer: one may call from each of the 16 million addresses of loopback.
    const peer = peerOf(address, undefined);
    const name = [peer, rule, misplaced?.key ?? '', misplaced?.where ?? ''].join('\n');
    if (this.#bursts.spend(name)) return this.#record(rejection, correlation, status);
    const waiting = Promise.withResolvers<Rule>();
    this.#bursts.join(name, waiting, (all) => {
      this.#record({ ...rejection, count: all.length }, correlation, status).then(
        (decided) => {
          for (const { resolve } of all) resolve(decided);
        },
        (error) => {
          for (const { reject } of all) reject(error);
        },
      );
    });
    return waiting.promise;
  }

  #record(rejection: Rejection, correlation: string, status: number | undefined): Promise<Rule> {
    const { bus, clock } = this.#services;
    return new Promise((resolve, failed) => {
      const refused = ({ rule }: AnswerParams): CallEnded => {
        resolve(rule);
        return { type: 'CALL_ENDED', outcome: 'answered', ...(status !== undefined && { status }), ms: 0 };
      };
      this.#decisions.expect(correlation, { refused, failed }, () =>
        bus.publish(callRejected, { at: clock.now(), ...rejection }, { correlation }),
      );
    });
  }
}
