import { type ChildProcess, spawn } from 'node:child_process';
import { Writable } from 'node:stream';
import type { Logger } from '../../../../core/host/logging/logger.ts';
import { guarded, hasGuard } from '../../../../core/host/process-guard.ts';
import type { Clock } from '../../../../core/kernel/clock.ts';
import { type Invocation, Unavailable } from './environment.ts';
import { LineReader, messagesIn, type StdioMessage } from './framing.ts';
import { residentBytes } from './memory.ts';
import { OutputLog } from './output-log.ts';

export interface ServerProcessOptions {
  readonly invocation: Invocation;
  /** Resident memory above which it is ended, bytes. */
  readonly maxMemory: number;
  readonly clock: Clock;
  /** Of this route. */
  readonly logger: Logger;
  /** Whether a guard ends it when we are killed; where there is a shell, unless set. */
  readonly isGuarded?: boolean;
  /** Gets each message that it writes. */
  readonly onMessage: (message: StdioMessage) => void;
}

/** How a process ended. */
export interface ProcessEnd {
  /** `exit code 1`, `signal SIGSEGV`, or why we ended it. */
  readonly reason: string;
  /** We ended it because it was not needed any more. */
  readonly wanted: boolean;
  /** How long it ran, milliseconds. */
  readonly ranMs: number;
}

/** A request whose process has ended: to its caller a connection that broke off. */
export class ProcessLost extends Error {
  readonly code = 'ECONNRESET';
}

/** Longest line that a program may write, bytes. */
const LONGEST_LINE: number = 8 * 1024 * 1024;
/** What a program may leave unread on its standard input, bytes. */
const MOST_UNREAD: number = 16 * 1024 * 1024;
const MEMORY_EVERY_MS = 5_000;
/** From SIGTERM to SIGKILL, and from SIGKILL to leaving its pipes, in real time: a process that hangs does not wait for a test's clock. */
const GRACE_MS = 2_000;

/** A program that speaks JSON-RPC line by line, in a session of its own that ends as a whole, also when we are killed. */
export class ServerProcess {
  readonly #options: ServerProcessOptions;
  readonly #output: OutputLog;
  readonly #ended: Promise<ProcessEnd>;
  #resolveEnded: (end: ProcessEnd) => void = () => {};
  #child: ChildProcess | undefined;
  #stdin: Writable | undefined;
  #guard: Writable | undefined;
  #cancelLook: () => void = () => {};
  #startedAt = 0;
  #isRunning = false;
  /** Until the last means, should the guard not do it. */
  #last: NodeJS.Timeout | undefined;
  /** Why we end it. */
  #ending: { readonly reason: string; readonly wanted: boolean } | undefined;

  constructor(options: ServerProcessOptions) {
    const { logger, invocation, clock } = options;
    this.#options = options;
    this.#output = new OutputLog(logger, invocation.secrets, clock);
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Resolves when it and all that it started have ended. */
  get ended(): Promise<ProcessEnd> {
    return this.#ended;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    const { invocation, clock, onMessage, isGuarded = hasGuard } = this.#options;
    const { cwd, env } = invocation;
    const [program, args] = isGuarded
      ? guarded(invocation.program, invocation.args, 'fourth')
      : [invocation.program, invocation.args];
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#finish(`it can not be started: ${error.code}`);
    });
    const { stdin, stdout, stderr } = child;
    const guard = child.stdio[3];
    if (!stdin || !stdout || !stderr || !(guard instanceof Writable)) return; // the error follows
    this.#child = child;
    this.#stdin = stdin;
    this.#guard = guard;
    this.#startedAt = clock.monotonic();
    this.#isRunning = true;
    for (const pipe of [stdin, guard]) pipe.on('error', () => {}); // it is gone, and `close` says why
    const lines = new LineReader(
      LONGEST_LINE,
      (line) => {
        if (this.#ending?.wanted === false) return;
        const messages = messagesIn(line);
        if (messages) for (const message of messages) onMessage(message);
        else this.#output.line('stdout', line);
      },
      () => this.#kill(`a line of more than ${LONGEST_LINE / 1024 / 1024} MiB`),
    );
    stdout.on('data', (chunk: Buffer) => lines.push(chunk));
    stderr.on('data', (chunk: Buffer) => this.#output.push(chunk));
    let leave: NodeJS.Timeout | undefined;
    child.once('exit', () => {
      this.#isRunning = false;
      this.#signal('SIGKILL'); // what the program has left running
      // A process that made a session of its own may keep the pipes open for ever.
      leave = setTimeout(() => [stdout, stderr].map((pipe) => pipe.destroy()), GRACE_MS);
    });
    child.once('close', (code, signal) => {
      clearTimeout(leave);
      this.#finish(signal === null ? `exit code ${code}` : `signal ${signal}`);
    });
    this.#look();
  }

  /**
   * Sends it a message.
   *
   * @throws Unavailable it leaves too much unread; ProcessLost it has ended
   */
  send(message: StdioMessage): void {
    const stdin = this.#stdin;
    if (!stdin?.writable || this.#ending) throw new ProcessLost('the server has ended');
    if (stdin.writableLength > MOST_UNREAD) throw new Unavailable('does not read what it is sent', 10_000);
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  /**
   * Ends it and all that it started: SIGTERM, and SIGKILL after two seconds.
   *
   * @param reason for the record
   * @param wanted whether it did nothing wrong
   */
  async end(reason: string, wanted = true): Promise<void> {
    if (this.#isRunning && !this.#ending) {
      this.#ending = { reason, wanted };
      this.#stdin?.end();
      this.#signal('SIGTERM');
      const force = setTimeout(() => this.#kill(reason), GRACE_MS);
      await this.#ended;
      clearTimeout(force);
    }
    await this.#ended;
  }

  /** Ends it at once, because it does what no server may do. */
  #kill(reason: string): void {
    this.#ending ??= { reason, wanted: false };
    this.#signal('SIGKILL');
  }

  /** Sends it to the whole session by the guard. Where there is none, or it was killed itself, the group gets it from us. */
  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { isGuarded = hasGuard } = this.#options;
    if (signal === 'SIGTERM') this.#guard?.write('\n');
    else this.#guard?.end();
    if (!isGuarded) this.#signalGroup(signal);
    else if (signal === 'SIGKILL') this.#last ??= setTimeout(() => this.#signalGroup(signal), GRACE_MS);
  }

  #signalGroup(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (this.#child?.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // they have all ended
    }
  }

  #look(): void {
    const { clock, maxMemory } = this.#options;
    this.#cancelLook = clock.after(MEMORY_EVERY_MS, () => {
      const bytes = this.#isRunning && this.#child?.pid !== undefined ? residentBytes(this.#child.pid) : 0;
      if (bytes > maxMemory)
        this.#kill(`memory: ${mebibytes(bytes)} resident, ${mebibytes(maxMemory)} allowed`);
      else if (this.#isRunning) this.#look();
    });
  }

  #finish(reason: string): void {
    const { clock } = this.#options;
    this.#isRunning = false;
    clearTimeout(this.#last);
    this.#cancelLook();
    this.#output.end();
    const ranMs = clock.monotonic() - this.#startedAt;
    this.#resolveEnded({ reason, wanted: false, ...this.#ending, ranMs });
  }
}

const mebibytes = (bytes: number): string =>
  `${(bytes / 1024 / 1024).toFixed(bytes < 10_485_760 ? 1 : 0)} MiB`;
