import { z } from 'zod';
import type { Answers, Cluster } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, newCorrelation } from '../../../core/kernel/clock.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { ClusterError } from '../errors.ts';
import { Drops, json, LARGEST_MESSAGE, readBody } from '../nats/body.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { type Stamp, stampFields } from '../presence/beat.ts';
import type { Beats } from '../presence/beats.ts';
import { Remembered } from './remembered.ts';

const LARGEST_ANSWER = 256 * 1024;
/** A question is answered once. Longer than it counts as fresh. */
const REMEMBERED_MS = 60_000;
const MOST_REMEMBERED = 20_000;
/** As long as it takes until the others' beats are heard; then nobody else is there. */
const ALONE_AFTER_MS = 2_000;

const text = z.string().max(300);
const questionBody = z.object({ ...stampFields, id: text.min(1), question: text.min(1), body: json });
/** Without an answer a host says that it knows nothing of it, or (`failed`) that it cannot say, so that nobody waits for it. */
const answerBody = z.object({ from: text, answer: json.optional(), failed: z.literal(true).optional() });

type Answer = Pick<z.output<typeof answerBody>, 'answer' | 'failed'>;
type Answerer = Parameters<Cluster['onAsked']>[1];

export interface AsksOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly beats: Pick<Beats, 'stamp' | 'isFresh' | 'present' | 'askable' | 'upMs' | 'run'>;
}

/** Questions to all other hosts (docs/cluster.md, "Messages between hosts"): whoever knows something answers, until all have or the time is over. */
export class Asks {
  readonly #options: AsksOptions;
  readonly #drops: Drops;
  readonly #answerers = new Map<string, Answerer>();
  readonly #seen: Remembered<true>;
  #end: () => void = () => {};

  constructor(options: AsksOptions) {
    this.#options = options;
    this.#drops = new Drops('cluster.asks.dropped', options.clock, options.logger);
    this.#seen = new Remembered(options.clock, REMEMBERED_MS, MOST_REMEMBERED);
  }

  /** Begins to answer: every question, so that others need not wait for this host. */
  start(): void {
    const { link, name } = this.#options;
    this.#end = link.subscribe(`hf.${name}.ask.>`, (message) => this.#asked(message));
  }

  stop(): void {
    this.#end();
  }

  /** Questions and answers that were dropped. */
  get dropped(): number {
    return this.#drops.count;
  }

  onAsked(question: string, answer: Answerer): void {
    this.#answerers.set(question, answer);
  }

  /**
   * @param timeoutMs the longest wait
   * @returns what the others answered, and who did not: without a connection all
   * @throws HF_CLUSTER_MESSAGE_SIZE the question has more than 64 KiB
   */
  async ask(question: string, body: Json, timeoutMs: number): Promise<Answers> {
    const { link, logger, name, host, beats } = this.#options;
    const message = { ...beats.stamp(), id: newCorrelation(), question, body };
    const bytes = Buffer.from(JSON.stringify(message));
    if (bytes.length > LARGEST_MESSAGE) {
      const details = { topic: question, bytes: bytes.length, most: LARGEST_MESSAGE };
      throw new ClusterError('HF_CLUSTER_MESSAGE_SIZE', details);
    }
    const { askable } = beats;
    const others = beats.present.size;
    if (others === 0 && beats.upMs > ALONE_AFTER_MS) return { answers: [], unanswered: askable };
    const found = new Map<string, Answer>();
    const isLast = ({ body: answer }: LinkMessage): boolean => {
      const parsed = readBody(answerBody, answer, LARGEST_ANSWER);
      const before = parsed && found.get(parsed.from);
      if (!parsed) this.#drops.add('malformed answer', { question });
      // A host of an earlier release says at once of a copy of the question that it failed, and answers the question later.
      else if (parsed.from !== host && (!before || before.failed)) found.set(parsed.from, parsed);
      return others > 0 && found.size >= others;
    };
    try {
      await link.requestAll(`hf.${name}.ask.${question}`, bytes, timeoutMs, isLast);
    } catch (error) {
      logger.debug({ err: error, question }, 'cluster.asks.unanswered');
    }
    return {
      answers: [...found].flatMap(([from, { answer }]) =>
        answer === undefined ? [] : [{ host: from, answer }],
      ),
      unanswered: [...new Set([...askable, ...beats.askable])].filter(
        (other) => found.get(other)?.failed ?? !found.has(other),
      ),
    };
  }

  async #asked(message: LinkMessage): Promise<void> {
    const { name, host, beats } = this.#options;
    const { subject } = message;
    const asked = readBody(questionBody, message.body, LARGEST_MESSAGE);
    if (!asked || subject !== `hf.${name}.ask.${asked.question}`) this.#drops.add('malformed', { subject });
    else if (asked.run !== beats.run) {
      const { from, id, question } = asked;
      const problem = this.#problem(asked, `${from} ${id}`);
      if (problem) this.#drops.add(problem, { from, question });
      // A copy that a stranger sends asks for its answer at the same place: it would be taken for that of the question.
      if (problem === 'repeated') return;
      const answer: Answer = problem ? { failed: true } : await this.#answer(asked);
      message.respond(JSON.stringify({ from: host, ...answer }));
    }
  }

  async #answer({ from, question, body }: z.output<typeof questionBody>): Promise<Answer> {
    try {
      const answer = await this.#answerers.get(question)?.(body, from);
      const bytes = answer === undefined ? 0 : Buffer.byteLength(JSON.stringify(answer));
      if (bytes <= LARGEST_ANSWER - 1_024) return { answer };
      this.#options.logger.error({ question, bytes, most: LARGEST_ANSWER }, 'cluster.asks.large');
    } catch (error) {
      this.#options.logger.error({ err: error, question, from }, 'cluster.asks.failed');
    }
    return { failed: true };
  }

  #problem(stamp: Stamp, key: string): string | undefined {
    if (!this.#options.beats.isFresh(stamp)) return 'late';
    if (this.#seen.get(key)) return 'repeated';
    return this.#seen.add(key, true) ? undefined : 'too many';
  }
}
