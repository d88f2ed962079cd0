import { isObject } from '../../kernel/json.ts';

const COLOURS: Readonly<Record<string, string>> = {
  warn: '\u001b[33m',
  error: '\u001b[31m',
  fatal: '\u001b[31;1m',
  debug: '\u001b[2m',
  trace: '\u001b[2m',
};
const RESET = '\u001b[0m';

/**
 * One JSON log line as a short line for a terminal: time, level, plugin, event name, fields; an error's remedy and
 * stack on lines of their own.
 */
export function humanLine(json: string, colour: boolean): string {
  const { time, level, plugin, msg, err, pid: _pid, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const paint = (colour && COLOURS[String(level)]) || '';
  const head = [
    String(time).slice(11, 23),
    `${paint}${String(level).toUpperCase().padEnd(5)}${paint && RESET}`,
    ...(plugin === undefined ? [] : [plain(plugin)]),
    plain(msg ?? ''),
    ...Object.entries(fields).map(([name, value]) => `${name}=${plain(value)}`),
  ];
  return `${head.join(' ')}\n${isObject(err) ? errorLines(err) : ''}`;
}

function errorLines(error: Record<string, unknown>): string {
  const { code, what, remedy, message, stack } = error;
  const lines = [what === undefined ? `${message ?? code ?? ''}` : `${code}: ${what}`];
  if (remedy !== undefined) lines.push(`remedy: ${remedy}`);
  // The first lines of a stack repeat the message.
  if (typeof stack === 'string') lines.push(...stack.split('\n').filter((line) => /^\s+at /.test(line)));
  return lines.map((line) => `    ${clean(line.trim())}\n`).join('');
}

function plain(value: unknown): string {
  if (typeof value !== 'string') return clean(JSON.stringify(value) ?? '');
  return clean(/[\s"=]/.test(value) && value.includes(' ') ? JSON.stringify(value) : value);
}

/** A control character from outside could rewrite what the terminal shows. */
function clean(text: string): string {
  return [...text].map((character) => (isControl(character) ? ' ' : character)).join('');
}

function isControl(character: string): boolean {
  return character < ' ' || (character >= '\u007f' && character <= '\u009f');
}
