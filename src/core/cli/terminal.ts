import { styleText } from 'node:util';

/** A colour or face of `util.styleText`, or several. */
export type Format = Parameters<typeof styleText>[0];
export type Colour = Extract<Format, string>;

/** Lines are made for this width where no terminal says its own. */
const COLUMNS = 100;
/** Below this, lines wrap by themselves rather than become unreadable. */
const NARROWEST = 80;

/** Where output goes, and what it may look like. */
export interface Terminal {
  /** Writes to standard output, as it is. */
  readonly out: (text: string) => void;
  /** Writes to standard error, as it is. */
  readonly err: (text: string) => void;
  /** Whether a person watches standard output. */
  readonly interactive: boolean;
  /** Characters in a line. */
  readonly columns: number;
  /** Colours a text for standard output, where a terminal can show colours and NO_COLOR is not set. */
  readonly paint: (format: Format, text: string) => string;
  /** The same for standard error. */
  readonly paintError: (format: Format, text: string) => string;
  /** Shows a passing line on a terminal's standard error; an empty one takes it away. */
  readonly progress: (text: string) => void;
  /** Aborted when nobody reads standard output any more: `holdfast log list | head`. */
  readonly closed: AbortSignal;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  const closed = new AbortController();
  let passing = '';
  for (const stream of [stdout, stderr]) {
    // Without a listener, a reader that went away would end the process with a stack trace.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // A terminal that was closed answers EIO; what must be undone then has to run on.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      if (stream === stdout) closed.abort('EPIPE');
    });
  }
  return {
    out: (text) => {
      if (!closed.signal.aborted) stdout.write(text);
    },
    err: (text) => void stderr.write(text),
    interactive: stdout.isTTY === true,
    get columns() {
      return Math.max(stdout.columns || COLUMNS, NARROWEST); // a pseudo-terminal may say 0
    },
    paint: (format, text) => styleText(format, text, { stream: stdout }),
    paintError: (format, text) => styleText(format, text, { stream: stderr }),
    progress: (text) => {
      if (stderr.isTTY && text !== passing) stderr.write(`\r\u001b[K${text}`);
      passing = text;
    },
    closed: closed.signal,
  };
}
