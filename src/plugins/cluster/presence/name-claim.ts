import { z } from 'zod';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { ClusterError } from '../errors.ts';
import { LARGEST_MESSAGE, readBody } from '../nats/body.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { type Beat, identity } from './beat.ts';

const CHALLENGE_MS = 1_000;
/** Who has the name answers at once. */
const NAME_MS = CHALLENGE_MS / 4;

const answerBody = identity.extend({ startedAt: z.int(), isStarted: z.boolean() });

/** A run of a host: when it began by its own wall clock. */
type Beginning = Pick<Beat, 'startedAt' | 'run'>;

export interface NameClaimOptions extends Pick<Beat, 'host' | 'run' | 'version' | 'protocol' | 'startedAt'> {
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
}

/** Which run the name of a host belongs to: every run answers who asks for its host, and the one that began first keeps the name. */
export class NameClaim {
  readonly #options: NameClaimOptions;
  #isStarted = false;

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
    const { link, logger, host, run } = this.#options;
    try {
      // This process answers, too.
      const answers = await link.requestAll(this.#subject(host), '{}', NAME_MS);
      for (const { body } of answers) {
        const other = readBody(answerBody, body, LARGEST_MESSAGE);
        if (!other || other.run === run) continue;
        const hasBetterClaim = other.isStarted === this.#isStarted ? this.isAfter(other) : other.isStarted;
        if (hasBetterClaim) return this.takenBy(other);
      }
    } catch (error) {
      logger.debug({ err: error }, 'cluster.name.unchecked');
    }
    return undefined;
  }

  /** @returns whether a run lives: it answers; a beat of the past does not. @throws HF_CLUSTER_UNREACHABLE */
  async lives({ host, run }: Pick<Beat, 'host' | 'run'>): Promise<boolean> {
    const answers = await this.#options.link.requestAll(this.#subject(host, run), '{}', CHALLENGE_MS, 1);
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
