import { z } from 'zod';
import type { ArrivedMessage, HostMessage } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { Drops, json, LARGEST_MESSAGE, readBody } from '../nats/body.ts';
import { inTime } from '../nats/in-time.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { stampFields } from '../presence/beat.ts';
import type { Beats } from '../presence/beats.ts';
import { Remembered } from './remembered.ts';
import { MOST_TOGETHER } from './shared-order.ts';
import { type Reply, type SentMessage, ToHolder } from './to-holder.ts';

/** Of one attempt: the holder answers when what it recorded of the messages is on its stream. */
const ATTEMPT_MS = 2_000;
const WITHIN_MS = 60_000;
/** Longer than a sender tries, and than a message counts as fresh. */
const REMEMBERED_MS = 120_000;
const MOST_REMEMBERED = 50_000;
/** Requests that wait for the log, or for the stream. */
const MOST_UNDER_WAY = 200;

const text = z.string().max(300);
const LONGEST_TOKEN = 'x'.repeat(100);
const request = z.object({
  ...stampFields,
  /** Of the lease under which they are to be taken, as far as the sender knows it. */
  token: text.optional(),
  /** In the order in which they were sent. */
  messages: z
    .array(
      z.object({
        id: text.min(1),
        topic: text.min(1),
        payload: json,
        correlation: text,
        cause: z.int().min(0).optional(),
      }),
    )
    .min(1)
    .max(MOST_TOGETHER),
});
/** `late`, `busy`, `not held`: the sender tries again. `other token`: it tries again with the token that is named. `failed`: it gives up. */
const answer = z.enum(['taken', 'not held', 'other token', 'late', 'busy', 'failed']);
/** One for each message. */
const response = z.object({ from: text, answers: z.array(answer), token: text.optional() });

type Answer = z.output<typeof answer>;

/** A message that was given to the actors. */
interface Taking {
  /** `taken` once they have decided. */
  readonly decided: Promise<Answer>;
  /** `taken` once a successor knows of it. */
  readonly answer: Promise<Answer>;
}

export interface HolderOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly beats: Pick<Beats, 'stamp' | 'isFresh'>;
  /**
   * Takes a message for a singleton that this host holds: resolves when the actors have decided. HF_PLUGIN_ELSEWHERE and HF_ACTOR_ELSEWHERE say
   * that the singleton does not run here: the sender tries again.
   */
  readonly deliver: (message: ArrivedMessage) => Promise<void>;
  /** Resolves when a successor knows of what was decided so far. HF_CLUSTER_STOPPED says that it may not: the sender tries again. */
  readonly known: () => Promise<void>;
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
 * Messages to the holder of a singleton, whoever that is (docs/cluster.md, "Messages between hosts"). The holder answers when it has taken them;
 * without an answer the sender asks again, also a new holder. One holder takes a message once.
 */
export class HolderMessages {
  readonly #options: HolderOptions;
  readonly #drops: Drops;
  readonly #holdings = new Map<string, Holding>();
  readonly #taken: Remembered<Taking>;
  /** The token of each singleton's lease, as its holder named it last. */
  readonly #tokens = new Map<string, string>();
  /** What this host has to say, by singleton. */
  readonly #outgoing = new Map<string, ToHolder>();
  #underWay = 0;

  constructor(options: HolderOptions) {
    this.#options = options;
    this.#drops = new Drops('cluster.holder.dropped', options.clock, options.logger);
    this.#taken = new Remembered(options.clock, REMEMBERED_MS, MOST_REMEMBERED);
  }

  /** Messages that wait for their holder. */
  get waiting(): number {
    return this.#outgoing.values().reduce((sum, { waiting }) => sum + waiting, 0);
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
    for (const singleton of [...this.#holdings.keys()]) this.release(singleton);
    for (const outgoing of this.#outgoing.values()) outgoing.stop();
  }

  /**
   * Has the holder of a singleton take a message. Those of this host for one singleton stay in their order. It waits through a takeover.
   *
   * @throws HF_CLUSTER_UNDELIVERED nobody took it, as far as this host knows; its text says whether it may have been taken
   * @throws HF_CLUSTER_MESSAGE_SIZE (64 KiB)
   */
  send(singleton: string, message: HostMessage): Promise<void> {
    const { clock, withinMs = WITHIN_MS } = this.#options;
    const outgoing =
      this.#outgoing.get(singleton) ??
      new ToHolder({
        ...{ clock, singleton, withinMs },
        sizeOf: (one) => this.#encode([one], LONGEST_TOKEN).length,
        ask: (messages) => this.#ask(singleton, messages),
      });
    this.#outgoing.set(singleton, outgoing);
    return outgoing.send(message);
  }

  async #ask(singleton: string, messages: readonly SentMessage[]): Promise<readonly Reply[]> {
    const answers = await this.#attempt(singleton, messages);
    if (typeof answers !== 'string')
      return answers.map((one) => ({ result: RESULTS[one], reason: REASONS[one] }));
    const result = answers.startsWith(MAYBE) ? 'unknown' : 'refused';
    return messages.map(() => ({ result, reason: answers }));
  }

  /** A holder that is not known yet says its token, and is asked again at once. @returns one for each message, or why there is none */
  async #attempt(
    singleton: string,
    messages: readonly SentMessage[],
    isFirst = true,
  ): Promise<readonly Answer[] | string> {
    const { link, host, clock } = this.#options;
    // Its own messages need no connection.
    const own = this.#holdings.get(singleton);
    try {
      if (own?.isHeld()) {
        const taken = this.#takeAll(singleton, own, host, messages);
        return await inTime(taken, `messages of this host for ${singleton}`, ATTEMPT_MS, clock);
      }
      const body = this.#encode(messages, this.#tokens.get(singleton));
      const reply = await link.request(this.#subject(singleton), body, ATTEMPT_MS);
      const parsed = readBody(response, reply.body, LARGEST_MESSAGE);
      if (parsed?.answers.length !== messages.length) return `${MAYBE}: the answer is none of this version`;
      if (parsed.token === undefined) return parsed.answers;
      this.#tokens.set(singleton, parsed.token);
      return isFirst ? this.#attempt(singleton, messages, false) : parsed.answers;
    } catch (error) {
      if (isCoded(error, 'HF_CLUSTER_TIMEOUT')) return `${MAYBE}: no answer came`;
      return isCoded(error) ? error.what : String(error);
    }
  }

  #encode(messages: readonly SentMessage[], token?: string): Buffer {
    return Buffer.from(JSON.stringify({ ...this.#options.beats.stamp(), token, messages }));
  }

  async #arrived(singleton: string, message: LinkMessage): Promise<void> {
    const { host, beats } = this.#options;
    const body = readBody(request, message.body, LARGEST_MESSAGE);
    if (!body) {
      this.#drops.add('malformed', { singleton });
      return;
    }
    const { from, token, messages } = body;
    const respond = (answers: readonly Answer[], held?: string) =>
      message.respond(JSON.stringify({ from: host, answers, token: held }));
    const refuse = (one: Answer, held?: string) =>
      respond(
        messages.map(() => one),
        held,
      );
    if (!beats.isFresh(body)) {
      this.#drops.add('late', { singleton, from });
      refuse('late');
      return;
    }
    const holding = this.#holdings.get(singleton);
    if (!holding?.isHeld()) {
      refuse('not held');
      return;
    }
    if (token !== holding.token) {
      if (token !== undefined) this.#drops.add('other token', { singleton, from });
      refuse('other token', holding.token);
      return;
    }
    if (this.#underWay >= MOST_UNDER_WAY) {
      this.#drops.add('too many', { singleton });
      refuse('busy');
      return;
    }
    this.#underWay += 1;
    const answers = await this.#takeAll(singleton, holding, from, messages);
    this.#underWay -= 1;
    respond(answers);
  }

  /** Never rejects. @returns an answer for each; behind one that is not taken now, none is */
  async #takeAll(
    singleton: string,
    holding: Holding,
    from: string,
    messages: readonly SentMessage[],
  ): Promise<readonly Answer[]> {
    const answers: Promise<Answer>[] = [];
    for (const message of messages) {
      const { decided, answer } = this.#take(singleton, holding, from, message);
      answers.push(answer);
      const first = await decided;
      if (first !== 'taken' && first !== 'failed') break;
    }
    const rest = messages.slice(answers.length).map((): Answer => 'not held');
    return [...(await Promise.all(answers)), ...rest];
  }

  /** The same id gets the same answer, while the first delivery is under way and long after. */
  #take(
    singleton: string,
    holding: Holding,
    from: string,
    { id, topic, payload, correlation, cause }: SentMessage,
  ): Taking {
    const key = `${singleton} ${from} ${id}`;
    const known = this.#taken.get(key);
    if (known) return known;
    if (!this.#taken.hasRoom) {
      this.#drops.add('too many', { singleton });
      return { decided: BUSY, answer: BUSY };
    }
    const arrived = { from, singleton, topic, payload, correlation, ...(cause !== undefined && { cause }) };
    const decided = this.#decided(arrived);
    const taking = { decided, answer: decided.then((first) => this.#known(first, arrived, holding)) };
    this.#taken.add(key, taking);
    void taking.answer.then((taken) => taken === 'not held' && this.#taken.delete(key));
    return taking;
  }

  async #decided(message: ArrivedMessage): Promise<Answer> {
    try {
      await this.#options.deliver(message);
      return 'taken';
    } catch (error) {
      return this.#answerTo(error, message);
    }
  }

  async #known(decided: Answer, message: ArrivedMessage, holding: Holding): Promise<Answer> {
    if (decided !== 'taken') return decided;
    try {
      await this.#options.known();
      // Else it may stand behind the fence of a successor, who does not know of it.
      return holding.counts() ? 'taken' : 'not held';
    } catch (error) {
      return this.#answerTo(error, message);
    }
  }

  #answerTo(error: unknown, { singleton, topic, from }: ArrivedMessage): Answer {
    // Its work has ended here, or not begun, while the lease still stands: e.g. amid a stop.
    if (NOT_HERE.some((code) => isCoded(error, code))) return 'not held';
    this.#options.logger.error({ err: error, singleton, topic, from }, 'cluster.holder.failed');
    return 'failed';
  }

  #subject(singleton: string): string {
    return `hf.${this.#options.name}.to.${singleton}`;
  }
}

const BUSY = Promise.resolve<Answer>('busy');
const NOT_HERE = ['HF_PLUGIN_ELSEWHERE', 'HF_ACTOR_ELSEWHERE', 'HF_CLUSTER_STOPPED'] as const;
const MAYBE = 'it may have been taken';
const RESULTS: Readonly<Record<Answer, Reply['result']>> = {
  taken: 'taken',
  'not held': 'refused',
  'other token': 'refused',
  busy: 'refused',
  late: 'refused',
  failed: 'failed',
};
const REASONS: Readonly<Record<Answer, string>> = {
  taken: 'taken',
  'not held': 'the host that was asked does not hold it any more',
  'other token': 'its holder took it over just now',
  busy: 'its holder takes no more for the moment',
  late: 'its holder does not hear the beats of this host',
  failed: 'its holder could not take it, and says why in its log',
};
