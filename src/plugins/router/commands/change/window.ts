import { createInterface } from 'node:readline';
import type { CommandContext } from '../../../../core/host/plugin/command.ts';
import type { Clock } from '../../../../core/kernel/clock.ts';
import type { RouterTarget } from '../target.ts';

/** Time that is reserved for the commit or the revert to arrive; at most a quarter of the window. */
const MARGIN_MS = 5_000;
const TICK_MS = 1_000;

export interface WindowOptions {
  readonly context: CommandContext;
  readonly target: RouterTarget;
  readonly transID: string;
  /** Until the router reverts, as far as that is known here. */
  readonly windowMs: number;
  readonly clock: Clock;
}

/**
 * The time in which a change can be checked and kept (R40): it ends some seconds before the router's own deadline, and
 * at once when the operator interrupts or the terminal is closed. Counts down on a terminal.
 */
export class Window {
  readonly #options: WindowOptions;
  readonly #ended = new AbortController();
  #deadline = 0;
  #says = '';
  #show = () => {};
  #cancelCut = () => {};
  #cancelTick = () => {};
  readonly #hungUp = () => this.#end('the terminal is gone (SIGHUP)');

  constructor(options: WindowOptions) {
    this.#options = options;
    const { signal, terminal } = options.context;
    // The command line handles a hang-up only where standard error is a terminal. From here on there is something to
    // undo, so it is handled everywhere, also while the append is under way.
    process.on('SIGHUP', this.#hungUp);
    const interrupted = () => this.#end(`interrupted (${String(signal.reason)})`);
    const unread = () => this.#end('the output is not read any more');
    if (signal.aborted) interrupted();
    signal.addEventListener('abort', interrupted, { once: true });
    terminal.closed.addEventListener('abort', unread, { once: true });
  }

  /** Aborted when the time is over, or when the operator interrupts. */
  get over(): AbortSignal {
    return this.#ended.signal;
  }

  /** Why it is over. */
  get why(): string {
    return String(this.#ended.signal.reason);
  }

  get deadlineText(): string {
    return new Date(this.#deadline).toISOString();
  }

  /** @param requestedAt epoch milliseconds, before the append was sent */
  async open(requestedAt: number): Promise<void> {
    const { windowMs, context, target, transID, clock } = this.#options;
    this.#deadline = (await target.deadline(transID)) ?? requestedAt + windowMs;
    const margin = Math.min(MARGIN_MS, (this.#deadline - requestedAt) / 4);
    const left = this.#deadline - margin - clock.now();
    this.#cancelCut = clock.after(left, () => this.#end("the router's window is nearly over"));
    this.#show = () => {
      const seconds = Math.max(0, Math.ceil((this.#deadline - margin - clock.now()) / 1000));
      context.terminal.progress(`${seconds} s left  ${this.#says} `);
    };
    const tick = () => {
      this.#cancelTick = clock.after(TICK_MS, tick);
      this.#show();
    };
    this.#cancelTick = clock.after(TICK_MS, tick);
  }

  /** Sets the text of the countdown line beside the seconds. */
  says(text: string): void {
    this.#says = text;
    this.#show();
  }

  close(): void {
    this.#cancelCut();
    this.#cancelTick();
    process.off('SIGHUP', this.#hungUp);
    this.#options.context.terminal.progress('');
  }

  #end(why: string): void {
    this.#cancelTick();
    this.#ended.abort(why);
  }
}

/**
 * Asks on the terminal whether the change is to stay. Any answer but "y" or "yes" means no, and so does the end of
 * input.
 *
 * @param over aborts the question
 * @returns undefined when it was aborted
 */
export function askToKeep(over: AbortSignal): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    // The terminal echoes and edits the line by itself, and its Ctrl-C stays a signal.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const settle = (answer: boolean | undefined) => {
      resolve(answer); // before closing, which reports an end of input
      over.removeEventListener('abort', abandon);
      lines.close();
      process.stdin.pause();
    };
    const abandon = () => settle(undefined);
    if (over.aborted) return abandon();
    over.addEventListener('abort', abandon, { once: true });
    lines.once('line', (text) => settle(/^\s*y(es)?\s*$/i.test(text)));
    lines.once('close', () => settle(false));
  });
}
