import { z } from 'zod';
import type { ArrivedMessage, HostMessage } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, newCorrelation } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { ClusterError } from '../errors.ts';
import { Drops, json, LARGEST_MESSAGE, readBody } from '../nats/body.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { stampFields } from '../presence/beat.ts';
import type { Beats } from '../presence/beats.ts';
import { Remembered } from './remembered.ts';

/** For one singleton. */
const MOST_WAITING = 1_000;
const AGAIN_MS = 250;
/** Of one attempt: the holder answers when what it recorded of the message is on its stream. */
const ATTEMPT_MS = 2_000;
const WITHIN_MS = 60_000;
/** Longer than a sender tries, and than a message counts as fresh. */
const REMEMBERED_MS = 120_000;
const MOST_REMEMBERED = 50_000;

const text = z.string().max(300);
const request = z.object({
  ...stampFields,
  id: text.min(1),
  /** Of the lease under which it is to be taken, as far as the sender knows it. */
  token: text.optional(),
  topic: text.min(1),
  payload: json,
  correlation: text,
  cause: z.int().min(0).optional(),
});
/** `late`, `busy`, `not held` and `other token`: the sender tries again, at the latter with that `token`. `failed`: it does not. */
const answer = z.object({
  from: text,
  answer: z.enum(['taken', 'not held', 'other token', 'late', 'busy', 'failed']),
  token: text.optional(),
});

type Answer = z.output<typeof answer>['answer'];

export interface HolderOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly beats: Pick<Beats, 'stamp' | 'isFresh'>;
  /**
   * Takes a message for a singleton that this host holds. When the promise resolves, a successor knows of it. HF_PLUGIN_ELSEWHERE and
   * HF_ACTOR_ELSEWHERE say that the singleton does not run here, HF_CLUSTER_STOPPED that a successor may not know of it: the sender tries again.
   */
  readonly deliver: (message: ArrivedMessage) => Promise<void>;
  /** How long to try; 60,000 unless set. Milliseconds. */
  readonly withinMs?: number;
}

/** The lease under which messages for a singleton are taken. */
export interface HeldLease {
  /** A message that was sent to another holder, or under another lease, is not taken. */
  readonly token: string;
  /** Whether a message may be taken now. */
  readonly isHeld: () => boolean;
  /** Whether what was taken counts: the lease has stood without a break since. It also does while the work ends by plan. */
  readonly counts: () => boolean;
}

interface Holding extends HeldLease {
  readonly end: () => void;
}

/**
 * Messages to the holder of a singleton, whoever that is (docs/cluster.md, "Concepts"). The holder answers when it has taken one;
 * without an answer the sender asks again, also a new holder. One holder takes a message once.
 */
export class HolderMessages {
  readonly #options: HolderOptions;
  readonly #drops: Drops;
  readonly #holdings = new Map<string, Holding>();
  readonly #queues = new Map<string, Promise<void>>();
  readonly #taken: Remembered<Promise<Answer>>;
  /** The token of each singleton's lease, as its holder named it last. */
  readonly #tokens = new Map<string, string>();
  readonly #pauses = new Set<() => void>();
  /** Messages that wait for their holder, by singleton. */
  readonly #waiting = new Map<string, number>();
  #isStopped = false;

  constructor(options: HolderOptions) {
    this.#options = options;
    this.#drops = new Drops('cluster.holder.dropped', options.clock, options.logger);
    this.#taken = new Remembered(options.clock, REMEMBERED_MS, MOST_REMEMBERED);
  }

  /** Messages that wait for their holder. */
  get waiting(): number {
    return this.#waiting.values().reduce((sum, count) => sum + count, 0);
  }

  /** Messages that were dropped or refused. */
  get dropped(): number {
    return this.#drops.count;
  }

  /** Takes messages for a singleton from now on. */
  hold(singleton: string, lease: HeldLease): void {
    this.release(singleton);
    const end = this.#options.link.subscribe(this.#subject(singleton), (message) =>
      this.#arrived(singleton, message),
    );
    this.#holdings.set(singleton, { ...lease, end });
  }

  release(singleton: string): void {
    this.#holdings.get(singleton)?.end();
    this.#holdings.delete(singleton);
  }

  stop(): void {
    this.#isStopped = true;
    for (const singleton of [...this.#holdings.keys()]) this.release(singleton);
    for (const end of [...this.#pauses]) end();
  }

  /**
   * Has the holder of a singleton take a message. Those of this host for one singleton stay in their order. It waits through a takeover.
   *
   * @throws HF_CLUSTER_UNDELIVERED nobody took it, as far as this host knows; its text says whether it may have been taken
   * @throws HF_CLUSTER_MESSAGE_SIZE (64 KiB)
   */
  async send(singleton: string, message: HostMessage): Promise<void> {
    const { clock, withinMs = WITHIN_MS } = this.#options;
    const waiting = this.#waiting.get(singleton) ?? 0;
    if (waiting >= MOST_WAITING)
      throw this.#undelivered(singleton, 0, `${MOST_WAITING} messages wait already`);
    const { topic } = message;
    const id = newCorrelation();
    const bytes = this.#encode(id, message).length;
    if (bytes > LARGEST_MESSAGE)
      throw new ClusterError('HF_CLUSTER_MESSAGE_SIZE', { topic, bytes, most: LARGEST_MESSAGE });
    this.#waiting.set(singleton, waiting + 1);
    const until = clock.monotonic() + withinMs;
    const before = this.#queues.get(singleton) ?? Promise.resolve();
    const sent = before.then(() => this.#send(singleton, id, message, until));
    const settled = sent.then(
      () => {},
      () => {},
    );
    this.#queues.set(singleton, settled);
    try {
      await sent;
    } finally {
      this.#waiting.set(singleton, (this.#waiting.get(singleton) ?? 1) - 1);
      if (this.#queues.get(singleton) === settled) this.#queues.delete(singleton);
    }
  }

  async #send(singleton: string, id: string, message: HostMessage, until: number): Promise<void> {
    const { clock, withinMs = WITHIN_MS } = this.#options;
    let reason = 'no attempt was made';
    for (;;) {
      if (this.#isStopped) throw this.#undelivered(singleton, withinMs, reason);
      const result = await this.#attempts(singleton, id, message);
      if (result === 'taken') return;
      // Once it may have been taken, a later refusal by another host does not undo that.
      if (!reason.startsWith(MAYBE)) reason = result;
      if (result === FAILED || clock.monotonic() + AGAIN_MS > until)
        throw this.#undelivered(singleton, withinMs, reason);
      await this.#pause();
    }
  }

  /** A holder that is not known yet says its token, and is asked again at once. */
  async #attempts(singleton: string, id: string, message: HostMessage): Promise<string> {
    const result = await this.#attempt(singleton, id, message);
    return result === OTHER_TOKEN ? this.#attempt(singleton, id, message) : result;
  }

  /** @returns `taken`, or why not */
  async #attempt(singleton: string, id: string, message: HostMessage): Promise<string> {
    const { link, host } = this.#options;
    // Its own messages need no connection.
    const own = this.#holdings.get(singleton);
    if (own?.isHeld()) return REASONS[await this.#deliver(own, id, { ...message, from: host, singleton })];
    try {
      const body = this.#encode(id, message, this.#tokens.get(singleton));
      const reply = await link.request(this.#subject(singleton), body, ATTEMPT_MS);
      const parsed = readBody(answer, reply.body, LARGEST_MESSAGE);
      if (parsed?.token !== undefined) this.#tokens.set(singleton, parsed.token);
      return parsed ? REASONS[parsed.answer] : `${MAYBE}: the answer is none of this version`;
    } catch (error) {
      if (isCoded(error, 'HF_CLUSTER_TIMEOUT')) return `${MAYBE}: no answer came`;
      return isCoded(error) ? error.what : String(error);
    }
  }

  #encode(id: string, { topic, payload, correlation, cause }: HostMessage, token?: string): Buffer {
    const stamp = this.#options.beats.stamp();
    return Buffer.from(JSON.stringify({ ...stamp, id, token, topic, payload, correlation, cause }));
  }

  async #arrived(singleton: string, message: LinkMessage): Promise<void> {
    const { host, beats } = this.#options;
    const respond = (result: Answer, token?: string) =>
      message.respond(JSON.stringify({ from: host, answer: result, token }));
    const body = readBody(request, message.body, LARGEST_MESSAGE);
    if (!body) {
      this.#drops.add('malformed', { singleton });
      return;
    }
    if (!beats.isFresh(body)) {
      this.#drops.add('late', { singleton, from: body.from });
      respond('late');
      return;
    }
    const holding = this.#holdings.get(singleton);
    if (!holding?.isHeld()) {
      respond('not held');
      return;
    }
    if (body.token !== holding.token) {
      if (body.token !== undefined) this.#drops.add('other token', { singleton, from: body.from });
      respond('other token', holding.token);
      return;
    }
    const { id, from, topic, payload, correlation, cause } = body;
    const arrived = { from, singleton, topic, payload, correlation, ...(cause !== undefined && { cause }) };
    respond(await this.#deliver(holding, `${from} ${id}`, arrived));
  }

  /** The same id gets the same answer, while the first delivery is under way and long after. */
  #deliver(
    holding: Holding,
    id: string,
    message: ArrivedMessage & { readonly singleton: string },
  ): Promise<Answer> {
    const { singleton } = message;
    const key = `${singleton} ${id}`;
    const known = this.#taken.get(key);
    if (known) return known;
    if (!this.#taken.hasRoom) {
      this.#drops.add('too many', { singleton });
      return Promise.resolve('busy');
    }
    const result = this.#take(holding, message);
    this.#taken.add(key, result);
    void result.then((taken) => taken === 'not held' && this.#taken.delete(key));
    return result;
  }

  async #take(holding: Holding, message: ArrivedMessage): Promise<Answer> {
    try {
      await this.#options.deliver(message);
      // Else it may stand behind the fence of a successor, who does not know of it.
      return holding.counts() ? 'taken' : 'not held';
    } catch (error) {
      // Its work has ended here, or not begun, while the lease still stands: e.g. amid a stop.
      if (NOT_HERE.some((code) => isCoded(error, code))) return 'not held';
      const { singleton, topic, from } = message;
      this.#options.logger.error({ err: error, singleton, topic, from }, 'cluster.holder.failed');
      return 'failed';
    }
  }

  #subject(singleton: string): string {
    return `hf.${this.#options.name}.to.${singleton}`;
  }

  #undelivered(singleton: string, ms: number, reason: string): Error {
    return new ClusterError('HF_CLUSTER_UNDELIVERED', { singleton, ms, reason });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#pauses.delete(done);
        resolve();
      };
      const cancel = this.#options.clock.after(AGAIN_MS, done);
      this.#pauses.add(done);
    });
  }
}

const NOT_HERE = ['HF_PLUGIN_ELSEWHERE', 'HF_ACTOR_ELSEWHERE', 'HF_CLUSTER_STOPPED'] as const;
const MAYBE = 'it may have been taken';
const OTHER_TOKEN = 'its holder took it over just now';
const FAILED = 'its holder could not take it, and says why in its log';
const REASONS: Readonly<Record<Answer, string>> = {
  taken: 'taken',
  'not held': 'the host that was asked does not hold it any more',
  'other token': OTHER_TOKEN,
  busy: 'its holder takes no more within two minutes',
  late: 'its holder does not hear the beats of this host',
  failed: FAILED,
};
