import { emitKeypressEvents, type Key as Keypress } from 'node:readline';
import type { Size } from './frame.ts';
import type { Key } from './viewer.ts';

const ENTER_ALTERNATE = '\u001b[?1049h\u001b[?25l';
const LEAVE_ALTERNATE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 };

/** The terminal while the viewer uses it: keys are read one by one, and each frame is drawn over the one before. */
export class Screen {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  /** A dumb terminal cannot move its cursor: frames are printed one below the other. */
  readonly #isDumb: boolean;
  readonly #keys: Key[] = [];
  #wake: () => void = () => {};
  #interrupt: (() => void) | undefined;
  #hasEnded = false;
  #isOpen = false;
  readonly #restore = () => this.release();

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream, term: string | undefined) {
    this.#input = input;
    this.#output = output;
    this.#isDumb = term === undefined || term === '' || term === 'dumb';
  }

  get size(): Size {
    const { columns, rows } = this.#output;
    return { columns: columns || DEFAULT_SIZE.columns, rows: rows || DEFAULT_SIZE.rows };
  }

  /** Takes over the terminal; it is restored however the process ends. @param changed called when its size has changed */
  open(changed: () => void): void {
    emitKeypressEvents(this.#input);
    this.#input.on('keypress', (text: string | undefined, key: Keypress) => this.#addKey(text, key));
    this.#input.on('end', () => this.endInput()).on('error', () => this.endInput());
    this.#output.on('resize', () => {
      changed();
      this.#wake();
    });
    process.on('exit', this.#restore);
    this.#enter();
  }

  /** Restores the terminal. May be called again. */
  release(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (this.#input.isTTY) this.#input.setRawMode(false);
    if (!this.#isDumb) this.#output.write(LEAVE_ALTERNATE);
  }

  /** No more keys will come. */
  endInput(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Stops the process as Ctrl-Z does elsewhere, and takes the terminal again when it goes on. */
  suspend(): void {
    this.release();
    process.once('SIGCONT', () => {
      this.#enter();
      this.#wake();
    });
    process.kill(process.pid, 'SIGTSTP');
  }

  /** Lets go of everything, so that the process can end. */
  close(): void {
    this.release();
    process.off('exit', this.#restore);
    this.#input.pause();
  }

  /** Runs work that may take long; Ctrl-C and Escape abort its signal instead of being keys. */
  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const interruption = new AbortController();
    this.#interrupt = () => interruption.abort();
    try {
      return await work(interruption.signal);
    } finally {
      this.#interrupt = undefined;
    }
  }

  draw(lines: readonly string[]): void {
    if (this.#isDumb) this.#output.write(`${lines.join('\n')}\n\n`);
    else this.#output.write(`${HOME}${lines.map((line) => `${line}${CLEAR_LINE}`).join('\n')}${CLEAR_BELOW}`);
  }

  /** The keys since the last call, as soon as there are any or the screen must be drawn anew; undefined at the end. */
  async keys(): Promise<readonly Key[] | undefined> {
    if (this.#keys.length === 0 && !this.#hasEnded) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#keys.length === 0 && this.#hasEnded ? undefined : this.#keys.splice(0);
  }

  #enter(): void {
    this.#isOpen = true;
    this.#input.setRawMode(true);
    this.#input.resume();
    if (!this.#isDumb) this.#output.write(ENTER_ALTERNATE);
  }

  #addKey(text: string | undefined, { name, ctrl, sequence }: Keypress): void {
    const typed = text ?? '';
    if (this.#interrupt && (name === 'escape' || (ctrl && name === 'c'))) {
      this.#interrupt();
      return;
    }
    if (this.#keys.length < MAX_WAITING_KEYS)
      this.#keys.push(
        ctrl ? { name: `ctrl-${name}`, text: '' } : { name: name ?? sequence ?? '', text: typed },
      );
    this.#wake();
  }
}

/** Keys that wait while the log is searched; the rest of a longer paste is dropped. */
const MAX_WAITING_KEYS = 256;
