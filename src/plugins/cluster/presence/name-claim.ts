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

/** Before somebody takes the place of a process: questions one second apart, and how long answers to them are waited for in all; it may be slow. Milliseconds. */
const QUESTIONS = { count: 3, apartMs: 1_000, withinMs: 5_000 };
/**
 * Runs of which neither has lasted so much longer count as equally old, milliseconds: how old another one is, is known to half of the time that its
 * answer took.
 */
const EQUALLY_OLD_MS = 3_000;
/** For so long it is known of a connection that nobody else has the name, milliseconds. */
const KNOWN_MS = 10_000;

const answerBody = identity.extend({
  startedAt: z.int(),
  /** How long the run has lasted; hosts of earlier releases do not say it. */
  upMs: z.number().min(0).optional(),
  isStarted: z.boolean(),
});

/** A run of a host: when it began by its own wall clock. */
type Beginning = Pick<Beat, 'startedAt' | 'run'>;

/** Another run of a host, as it answered. */
export interface AnsweredRun extends z.output<typeof answerBody> {
  /** How much longer than this run it has lasted, milliseconds; undefined when it did not say. */
  readonly longerMs: number | undefined;
}

export interface NameClaimOptions extends Pick<Beat, 'host' | 'run' | 'version' | 'protocol' | 'startedAt'> {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  /** How long this run has lasted, by its monotonic clock, milliseconds. */
  readonly upMs: () => number;
}

/** Which run the name of a host belongs to: every run answers who asks for its host, and the one that has lasted longest keeps the name. */
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

  /** @returns the error, when another process is this host and has the better claim: it runs already, or has lasted longer */
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
    const answers = await askedOften(clock, (withinMs) => this.#ask(withinMs));
    const owner = answers.find((answer) => answer.owner)?.owner;
    if (owner) throw this.takenBy(owner);
    // Who does not hear its own question may not be heard by the other one, either.
    if (!answers.every(({ isHeard }) => isHeard) || link.connected() !== over) {
      const reason = 'its questions did not come back to it';
      throw new ClusterError('HF_CLUSTER_NAME_UNKNOWN', { host, reason });
    }
    this.#ours = { over, at: clock.monotonic() };
  }

  /** @returns who has the better claim: it runs already, or has lasted longer; and whether this process heard the question, too */
  async #ask(
    withinMs: number,
  ): Promise<{ readonly owner?: Beginning | undefined; readonly isHeard: boolean }> {
    const { host, run } = this.#options;
    const all = await this.#answers(this.#subject(host), withinMs, () => false);
    const owner = all.find((other) => {
      if (other.run === run) return false;
      return other.isStarted === this.#isStarted ? this.isAfter(other) : other.isStarted;
    });
    return { owner, isHeard: all.some((answer) => answer.run === run) };
  }

  /** @returns what a run answers; undefined when it does not live: a beat of the past answers nothing. @throws HF_CLUSTER_UNREACHABLE */
  async answerOf({ host, run }: Pick<Beat, 'host' | 'run'>): Promise<AnsweredRun | undefined> {
    const [answer] = await this.#answers(this.#subject(host, run), CHALLENGE_MS, () => true);
    return answer?.run === run ? answer : undefined;
  }

  /**
   * Whether this run began after another one. Both sides come to the same result: by how long each has lasted, because a wall clock may be years
   * behind; and where that is nearly the same, by what each said when it began.
   */
  isAfter({ longerMs = 0, ...other }: AnsweredRun): boolean {
    if (Math.abs(longerMs) > EQUALLY_OLD_MS) return longerMs > 0;
    const { startedAt, run } = this.#options;
    return other.startedAt === startedAt ? other.run < run : other.startedAt < startedAt;
  }

  takenBy({ startedAt }: Beginning): Error {
    const since = new Date(startedAt).toISOString();
    return new ClusterError('HF_CLUSTER_NAME_TAKEN', { host: this.#options.host, since });
  }

  #tell(message: LinkMessage): void {
    const { host, run, version, protocol, startedAt } = this.#options;
    const upMs = this.#options.upMs();
    message.respond(
      JSON.stringify({ host, run, version, protocol, startedAt, upMs, isStarted: this.#isStarted }),
    );
  }

  async #answers(subject: string, withinMs: number, isLast: () => boolean): Promise<readonly AnsweredRun[]> {
    const { link, clock, upMs } = this.#options;
    const askedAt = clock.monotonic();
    const found: AnsweredRun[] = [];
    await link.requestAll(subject, '{}', withinMs, ({ body }) => {
      const answer = readBody(answerBody, body, LARGEST_MESSAGE);
      if (!answer) return isLast();
      // It was said between the question and now: most likely half of the way.
      const sinceMs = (clock.monotonic() - askedAt) / 2;
      const longerMs = answer.upMs === undefined ? undefined : answer.upMs + sinceMs - upMs();
      found.push({ ...answer, longerMs });
      return isLast();
    });
    return found;
  }

  #subject(...of: string[]): string {
    return subjectOf(this.#options.name, ...of);
  }
}

/**
 * Whether a host of a cluster runs, for who is none of its hosts: some run of it answers. A beat says nothing, because it may be of the past. That nobody
 * answers is known after 5 s.
 *
 * @throws HF_CLUSTER_UNREACHABLE the connection was lost meanwhile
 */
export async function hostRuns({
  link,
  clock,
  name,
  host,
}: Pick<NameClaimOptions, 'link' | 'clock' | 'name' | 'host'>): Promise<boolean> {
  const over = link.connected();
  const isOf = ({ body }: LinkMessage) => readBody(identity, body, LARGEST_MESSAGE)?.host === host;
  const ask = (withinMs: number) => link.requestAll(subjectOf(name, host), '{}', withinMs, isOf);
  const answers = await askedOften(clock, ask);
  if (answers.flat().some(isOf)) return true;
  if (link.connected() === over) return false;
  throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason: 'the connection was lost meanwhile' });
}

function subjectOf(cluster: string, ...of: string[]): string {
  return ['hf', cluster, 'is', ...of].join('.');
}

/** Asks as often and waits as long as one has to before somebody takes the place of a process. */
function askedOften<T>(clock: Clock, ask: (withinMs: number) => Promise<T>): Promise<readonly T[]> {
  const { count, apartMs, withinMs } = QUESTIONS;
  const questions = Array.from({ length: count }, async (_, index) => {
    if (index > 0) await passed(clock, index * apartMs);
    return ask(withinMs - index * apartMs);
  });
  return Promise.all(questions);
}
