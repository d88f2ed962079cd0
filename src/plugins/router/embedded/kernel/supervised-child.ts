import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../../../../core/kernel/clock.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';

export interface SupervisedChildOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly clock: Clock;
  /** Gets each line that it prints, without its line break. */
  readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void;
  /** It runs, for the first time or again. */
  readonly onUp?: (pid: number) => void;
  /** It ended although nobody stopped it; it is started again after a delay. */
  readonly onEnd?: (reason: string, failures: number) => void;
}

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;
/** A process that ran for this long starts again after the shortest delay. */
const STABLE_MS = 30_000;
/** From SIGTERM to SIGKILL, in real time: a process that hangs does not wait for a test's clock. */
const GRACE_MS = 3_000;
/** Longer lines are dropped: no line of the programs that are supervised comes near it. */
const LONGEST_LINE = 16_384;

/**
 * One long-lived child process without a shell. It is started once, and again with a growing delay whenever it ends by
 * itself (R29: a steady state starts no process).
 */
export class SupervisedChild {
  readonly #options: SupervisedChildOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #cancelStart: (() => void) | undefined;
  #startedAt = 0;
  /** When it was started by the monotonic clock. */
  #started = 0;
  /** Ends in a row that came soon after a start. */
  #failures = 0;
  #fault: string | undefined;
  #isWanted = false;

  constructor(options: SupervisedChildOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it, unless it runs. */
  start(): void {
    this.#isWanted = true;
    this.#cancelStart?.();
    if (this.#child === undefined) this.#spawn();
  }

  /** Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#cancelStart?.();
    const child = this.#child;
    if (child === undefined) return;
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    await this.#ended;
    clearTimeout(force);
  }

  /** For health pages: whether it runs, since when, and why it does not. */
  report(): JsonObject {
    if (this.#child?.pid !== undefined)
      return { running: true, pid: this.#child.pid, since: new Date(this.#startedAt).toISOString() };
    return { running: false, reason: this.#fault ?? 'it was not started' };
  }

  #spawn(): void {
    const { program, args, clock, onLine, onUp } = this.#options;
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#startedAt = clock.now();
    this.#started = clock.monotonic();
    const last: string[] = [];
    for (const stream of ['stdout', 'stderr'] as const) {
      eachLine(child[stream], (line) => {
        if (stream === 'stderr') last.splice(0, last.length, ...last.slice(-2), line);
        onLine(line, stream);
      });
    }
    this.#ended = new Promise((resolve) => {
      const end = (reason: string) => {
        if (this.#child !== child) return;
        this.#child = undefined;
        resolve();
        this.#onEnd(reason);
      };
      child.on('error', (error: NodeJS.ErrnoException) => {
        if (child.pid === undefined)
          end(error.code === 'ENOENT' ? `there is no program ${program}` : error.message);
      });
      child.on('close', (code, signal) => {
        end([`it ended with ${signal ?? code}`, ...last].join('; ').slice(0, 300));
      });
    });
    if (child.pid !== undefined) onUp?.(child.pid);
  }

  #onEnd(reason: string): void {
    if (!this.#isWanted) return;
    const { clock, onEnd } = this.#options;
    this.#fault = reason;
    this.#failures = clock.monotonic() - this.#started >= STABLE_MS ? 1 : this.#failures + 1;
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), LONGEST_DELAY_MS);
    this.#cancelStart = clock.after(delayMs, () => this.start());
    onEnd?.(reason, this.#failures);
  }
}

/** Cuts a stream into lines. A line that is too long is dropped as a whole, so that no output fills the memory. */
function eachLine(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  let rest = '';
  let isDropping = false;
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!isDropping) onLine(line);
      isDropping = false;
    }
    if (rest.length > LONGEST_LINE) {
      rest = '';
      isDropping = true;
    }
  });
}
