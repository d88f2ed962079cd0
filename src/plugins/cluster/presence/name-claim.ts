import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, passed } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import { LARGEST_MESSAGE, readBody } from '../nats/body.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { type Beat, identity } from './beat.ts';

const CHALLENGE_MS = 1_000;
/** Who has the name answers at once. */
const NAME_MS = CHALLENGE_MS / 4;

/** Before a stream is replaced: questions one second apart, and how long answers to them are waited for in all; another process may be slow. Milliseconds. */
const QUESTIONS = { count: 3, apartMs: 1_000, withinMs: 5_000 };
/** For so long it is known of a connection that nobody else has the name, milliseconds. */
const KNOWN_MS = 10_000;

const answerBody = identity.extend({ startedAt: z.int(), isStarted: z.boolean() });

/** A run of a host: when it began by its own wall clock. */
type Beginning = Pick<Beat, 'startedAt' | 'run'>;

export interface NameClaimOptions extends Pick<Beat, 'host' | 'run' | 'version' | 'protocol' | 'startedAt'> {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
}

/** Which run the name of a host belongs to: every run answers who asks for its host, and the one that began first keeps the name. */
export class NameClaim {
  readonly #options: NameClaimOptions;
  #isStarted = false;
  /** The connection over which nobody else had the name, and since when. */
  #ours: { readonly over: NatsConnection; readonly at: number } | undefined;

  constructor(options: NameClaimOptions) {
    this.#options = options;
  }

  /** Answers who asks. @returns ends it */
  answer(): () => void {
    const { link, host, run } = this.#options;
    const ends = [this.#subject(host), this.#subject(host, run)].map((subject) =>
      link.subscribe(subject, (message) => this.#tell(message)),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  /** This run counts as the host from now on: one that starts later yields to it. */
  started(): void {
    this.#isStarted = true;
  }

  /** @returns the error, when another process is this host and has the better claim: it runs already, or began earlier */
  async check(): Promise<Error | undefined> {
    try {
      const { owner } = await this.#ask(NAME_MS);
      return owner && this.takenBy(owner);
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'cluster.name.unchecked');
      return undefined;
    }
  }

  /**
   * Resolves when the name is known to be that of this run: its questions come back to it three times, and nobody who has the better claim answers. That takes 5 s.
   *
   * @throws HF_CLUSTER_NAME_TAKEN another process is this host
   * @throws HF_CLUSTER_NAME_UNKNOWN, HF_CLUSTER_UNREACHABLE ask again later
   */
  async ours(): Promise<void> {
    const { link, clock, host } = this.#options;
    const over = link.connected();
    if (this.#ours?.over === over && clock.monotonic() - this.#ours.at < KNOWN_MS) return;
    const { count, apartMs, withinMs } = QUESTIONS;
    const questions = Array.from({ length: count }, async (_, index) => {
      if (index > 0) await passed(clock, index * apartMs);
      return this.#ask(withinMs - index * apartMs);
    });
    const answers = await Promise.all(questions);
    const owner = answers.find((answer) => answer.owner)?.owner;
    if (owner) throw this.takenBy(owner);
    // Who does not hear its own question may not be heard by the other one, either.
    if (!answers.every(({ isHeard }) => isHeard) || link.connected() !== over) {
      const reason = 'its questions did not come back to it';
      throw new ClusterError('HF_CLUSTER_NAME_UNKNOWN', { host, reason });
    }
    this.#ours = { over, at: clock.monotonic() };
  }

  /** @returns who has the better claim: it runs already, or began earlier; and whether this process heard the question, too */
  async #ask(
    withinMs: number,
  ): Promise<{ readonly owner?: Beginning | undefined; readonly isHeard: boolean }> {
    const { link, host, run } = this.#options;
    const answers = await link.requestAll(this.#subject(host), '{}', withinMs);
    const all = answers
      .map(({ body }) => readBody(answerBody, body, LARGEST_MESSAGE))
      .filter((answer) => answer !== undefined);
    const owner = all.find((other) => {
      if (other.run === run) return false;
      return other.isStarted === this.#isStarted ? this.isAfter(other) : other.isStarted;
    });
    return { owner, isHeard: all.some((answer) => answer.run === run) };
  }

  /** @returns whether a run lives: it answers; a beat of the past does not. @throws HF_CLUSTER_UNREACHABLE */
  async lives({ host, run }: Pick<Beat, 'host' | 'run'>): Promise<boolean> {
    const answers = await this.#options.link.requestAll(
      this.#subject(host, run),
      '{}',
      CHALLENGE_MS,
      () => true,
    );
    const answer = answers.map(({ body }) => readBody(answerBody, body, LARGEST_MESSAGE)).find(Boolean);
    return answer?.run === run;
  }

  /** Whether this run began after another one. Both sides come to the same result, whatever their clocks say now. */
  isAfter(other: Beginning): boolean {
    const { startedAt, run } = this.#options;
    return other.startedAt === startedAt ? other.run < run : other.startedAt < startedAt;
  }

  takenBy({ startedAt }: Beginning): Error {
    const since = new Date(startedAt).toISOString();
    return new ClusterError('HF_CLUSTER_NAME_TAKEN', { host: this.#options.host, since });
  }

  #tell(message: LinkMessage): void {
    const { host, run, version, protocol, startedAt } = this.#options;
    message.respond(JSON.stringify({ host, run, version, protocol, startedAt, isStarted: this.#isStarted }));
  }

  #subject(...of: string[]): string {
    return ['hf', this.#options.name, 'is', ...of].join('.');
  }
}
