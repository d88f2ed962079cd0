import { emitKeypressEvents, type Key as Pressed } from 'node:readline';
import type { Size } from './frame.ts';
import type { Key } from './viewer.ts';

const ALTERNATE = '\u001b[?1049h\u001b[?25l';
const BACK = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const DEFAULT: Size = { columns: 80, rows: 24 };

/** The terminal while the viewer has it: keys come one by one, and a frame takes the place of the one before. */
export class Screen {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  /** A terminal that cannot move its cursor gets one frame below the other. */
  readonly #isDumb: boolean;
  readonly #keys: Key[] = [];
  #wake: () => void = () => {};
  #interrupt: (() => void) | undefined;
  #isOver = false;
  #isTaken = false;
  readonly #restore = () => this.release();

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream, term: string | undefined) {
    this.#input = input;
    this.#output = output;
    this.#isDumb = term === undefined || term === '' || term === 'dumb';
  }

  get size(): Size {
    const { columns, rows } = this.#output;
    return { columns: columns || DEFAULT.columns, rows: rows || DEFAULT.rows };
  }

  /** Takes the terminal; whatever ends the process gives it back. @param changed called when its size is another */
  take(changed: () => void): void {
    emitKeypressEvents(this.#input);
    this.#input.on('keypress', (text: string | undefined, key: Pressed) => this.#pressed(text, key));
    this.#input.on('end', () => this.over()).on('error', () => this.over());
    this.#output.on('resize', () => {
      changed();
      this.#wake();
    });
    process.on('exit', this.#restore);
    this.#enter();
  }

  /** Gives it back as it was. May be called again. */
  release(): void {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    if (this.#input.isTTY) this.#input.setRawMode(false);
    if (!this.#isDumb) this.#output.write(BACK);
  }

  /** No more keys will come. */
  over(): void {
    this.#isOver = true;
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

  /** Does what may take long; Ctrl-C and Escape abort its signal instead of being keys. */
  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const asked = new AbortController();
    this.#interrupt = () => asked.abort();
    try {
      return await work(asked.signal);
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
    if (this.#keys.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#keys.length === 0 && this.#isOver ? undefined : this.#keys.splice(0);
  }

  #enter(): void {
    this.#isTaken = true;
    this.#input.setRawMode(true);
    this.#input.resume();
    if (!this.#isDumb) this.#output.write(ALTERNATE);
  }

  #pressed(text: string | undefined, { name, ctrl, sequence }: Pressed): void {
    const typed = text ?? '';
    if (this.#interrupt && (name === 'escape' || (ctrl && name === 'c'))) {
      this.#interrupt();
      return;
    }
    if (this.#keys.length < MOST_KEYS)
      this.#keys.push(
        ctrl ? { name: `ctrl-${name}`, text: '' } : { name: name ?? sequence ?? '', text: typed },
      );
    this.#wake();
  }
}

/** Keys that wait while the log is searched; the rest of a longer paste is dropped. */
const MOST_KEYS = 256;
