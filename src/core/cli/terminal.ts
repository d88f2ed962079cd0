import { styleText } from 'node:util';
import type { Terminal } from '../plugin/command.ts';

export type { Colour, Format, Terminal } from '../plugin/command.ts';

/** Lines are made for this width where no terminal says its own. */
const COLUMNS = 100;
/** Below this, lines wrap by themselves rather than become unreadable. */
const NARROWEST = 80;

/**
 * What may stand on a terminal: colours stay, everything else that would act on it (moving the cursor, setting a title,
 * turning a line around) is shown as an escape, by which JSON stays the same data. Whatever is printed comes through here,
 * for texts may come from a config, a log or a machine elsewhere.
 */
export function inertText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/\u001b\[[\d;]*m|(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu, (found) =>
    found.endsWith('m') ? found : [...Array(found.length).keys()].map((at) => escaped(found, at)).join(''),
  );
}

function escaped(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
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
