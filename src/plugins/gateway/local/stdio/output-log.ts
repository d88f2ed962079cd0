import type { Logger } from '../../../../core/host/logging/logger.ts';
import { withoutSecrets } from '../../../../core/host/logging/mask-secrets.ts';
import { TokenBucket } from '../../../../core/host/token-bucket.ts';
import type { Clock } from '../../../../core/kernel/clock.ts';
import { LineReader } from './framing.ts';

/** How many lines of one program go to the log: at once, and in each second after that. */
const LINES = { burst: 50, perSecond: 20 } as const;
/** Characters of a line that are logged, and bytes of it that are read, so that no secret is cut in two before it is masked. */
const LONGEST_LINE = 2_000;
const READ_BYTES = 16_384;

/** What a program prints beside its messages, in the log: bounded, without control characters and without its secrets. */
export class OutputLog {
  readonly #logger: Logger;
  readonly #secrets: readonly string[];
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  readonly #stderr: LineReader = new LineReader(READ_BYTES, (line) => this.line('stderr', line));
  #dropped = 0;

  /**
   * @param logger of this route, which masks what looks like a secret
   * @param secrets values that the program was given
   */
  constructor(logger: Logger, secrets: readonly string[], clock: Clock) {
    this.#logger = logger;
    this.#secrets = secrets.filter((secret) => secret !== '');
    this.#clock = clock;
    this.#bucket = new TokenBucket(LINES, clock.monotonic());
  }

  /** Takes a part of the standard error output. */
  push(chunk: Buffer): void {
    this.#stderr.push(chunk);
  }

  /** Logs one line, unless there were too many: those are counted, and the next one that is logged says how many. */
  line(stream: 'stderr' | 'stdout', line: string): void {
    if (this.#bucket.take(this.#clock.monotonic()) > 0) {
      this.#dropped += 1;
      return;
    }
    const masked = withoutSecrets(line.slice(0, READ_BYTES).trimEnd(), this.#secrets);
    const dropped = this.#takeDropped();
    this.#logger.info({ stream, line: masked.slice(0, LONGEST_LINE), ...dropped }, 'gateway.server_output');
  }

  /** Logs what is left when the program has ended. */
  end(): void {
    this.#stderr.flush();
    const dropped = this.#takeDropped();
    if (dropped) this.#logger.info(dropped, 'gateway.server_output');
  }

  #takeDropped(): { readonly droppedLines: number } | undefined {
    const droppedLines = this.#dropped;
    this.#dropped = 0;
    return droppedLines === 0 ? undefined : { droppedLines };
  }
}
