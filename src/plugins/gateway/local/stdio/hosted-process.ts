import type { Logger } from '../../../../core/host/logging/logger.ts';
import type { Clock } from '../../../../core/kernel/clock.ts';
import { invocationOf, type ReadSecret, Unavailable, type WholeCommand } from './environment.ts';
import type { StdioMessage } from './framing.ts';
import { type ProcessEnd, ServerProcess } from './server-process.ts';

/** Who speaks with a process. */
export interface Peer {
  /** Whether something runs, or somebody listens. */
  readonly isUsed: boolean;
  receive(message: StdioMessage): void;
  /** The process has ended. */
  close(reason: string): void;
}

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;
/** A process that ran for this long may start again after the shortest delay. */
const STABLE_MS = 30_000;

/** When a program that ended by itself may be started again: after a second, and twice as long each time. */
export class RestartDelay {
  readonly #clock: Clock;
  #failures = 0;
  #until = 0;
  #isRestart = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 when it may be started, milliseconds. */
  get remainingMs(): number {
    return Math.max(0, this.#until - this.#clock.monotonic());
  }

  /** @returns whether a start now is one after an end that nobody wanted; counts each such end once */
  takeRestart(): boolean {
    const isRestart = this.#isRestart;
    this.#isRestart = false;
    return isRestart;
  }

  /** Takes down how a process ended. */
  ended({ ranMs, wanted }: ProcessEnd): void {
    this.#isRestart = !wanted;
    if (wanted) return;
    this.#failures = ranMs >= STABLE_MS ? 1 : this.#failures + 1;
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), LONGEST_DELAY_MS);
    this.#until = this.#clock.monotonic() + delayMs;
  }

  /** The program works, so that its next failure counts as the first. */
  reset(): void {
    this.#failures = 0;
  }
}

export interface StdioServerOptions {
  /** The route, for the log. */
  readonly name: string;
  readonly command: WholeCommand;
  /** Working folder, unless the command names one. */
  readonly folder: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly readSecret: ReadSecret;
}

/** A process with the one who speaks with it; it ends when it was not used for long enough. */
export class HostedProcess<P extends Peer> {
  readonly peer: P;
  readonly #process: ServerProcess;
  readonly #options: StdioServerOptions;
  readonly #onEnding: () => void;
  #cancelIdle: () => void = () => {};
  #isEnding = false;

  private constructor(options: StdioServerOptions, process: ServerProcess, peer: P, onEnding: () => void) {
    this.#options = options;
    this.#process = process;
    this.peer = peer;
    this.#onEnding = onEnding;
  }

  /**
   * Starts the program of a command.
   *
   * @param connect makes the one who speaks with it; calls back when the use of it changes
   * @param onEnding called when it begins to end, so that nothing new is sent to it
   * @throws Unavailable it can not be started
   */
  static async start<P extends Peer>(
    options: StdioServerOptions,
    connect: (process: ServerProcess, onUse: () => void) => P,
    onEnding: (hosted: HostedProcess<P>) => void,
  ): Promise<HostedProcess<P>> {
    const { command, folder, clock, readSecret } = options;
    const logger = options.logger.child({ route: options.name });
    const invocation = await invocationOf(command, folder, readSecret);
    const process = new ServerProcess({
      invocation,
      maxMemory: command.maxMemory,
      clock,
      logger,
      onMessage: (message) => hosted.peer.receive(message),
    });
    const peer = connect(process, () => hosted.watchIdle());
    const hosted = new HostedProcess(options, process, peer, () => onEnding(hosted));
    try {
      process.start();
    } catch (error) {
      throw new Unavailable('can not be started', undefined, { cause: error });
    }
    logger.info({ serverPid: process.pid }, 'gateway.server_started');
    void process.ended.then(({ reason, wanted, ranMs }) => {
      hosted.#leave();
      hosted.peer.close(reason);
      logger[wanted ? 'info' : 'warn']({ serverPid: process.pid, reason, ranMs }, 'gateway.server_ended');
    });
    return hosted;
  }

  get ended(): Promise<ProcessEnd> {
    return this.#process.ended;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Ends it. @param wanted whether it did nothing wrong */
  end(reason: string, wanted = true): Promise<void> {
    this.#leave();
    return this.#process.end(reason, wanted);
  }

  /** Ends it when it is not used for as long as it may be. */
  watchIdle(): void {
    this.#cancelIdle();
    if (this.#isEnding || this.peer.isUsed) return;
    const { clock, command } = this.#options;
    this.#cancelIdle = clock.after(command.idleMs, () => void this.end('idle'));
  }

  #leave(): void {
    this.#cancelIdle();
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#onEnding();
  }
}
