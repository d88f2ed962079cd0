import { format } from 'node:util';
import {
  type DestinationStream,
  destination,
  type Logger,
  type LoggerOptions,
  pino,
  stdTimeFunctions,
} from 'pino';
import { isObject } from '../../kernel/json.ts';
import { maskText } from './mask-text.ts';
import { redact } from './redact.ts';

export type { Logger } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface CreateLoggerOptions {
  /** `info` unless set. */
  readonly level?: LogLevel;
  /** Where lines go; standard error unless set. */
  readonly destination?: DestinationStream;
  /** One short line for people instead of JSON; set when standard error is a terminal. */
  readonly pretty?: boolean;
}

/** Lines that a slow reader of standard error may leave waiting, bytes; later ones are dropped. */
const LARGEST_BACKLOG = 4 * 1024 * 1024;

/**
 * The logger of a runtime (C14). A line is an event name and fields: `logger.info({ seq, ms }, 'log.commit')`. Every
 * field, message and error passes the redactor; there is no way around it.
 */
export function createLogger(options: CreateLoggerOptions = {}): Logger {
  const target = options.destination ?? standardError();
  const pretty = options.pretty ?? (options.destination === undefined && process.stderr.isTTY === true);
  const colour = pretty && options.destination === undefined && !process.env.NO_COLOR;
  const lines = pretty ? { write: (line: string) => target.write(humanLine(line, colour)) } : target;
  return boundSafely(
    pino({ ...redacting, level: options.level ?? 'info', base: { pid: process.pid } }, lines),
  );
}

/** Pino hands the bindings of a child to no hook; children inherit these two from the root. */
function boundSafely(root: Logger): Logger {
  const { child, setBindings } = root;
  root.child = function (this: Logger, bindings: object, ...rest: []) {
    return child.call(this, fieldsOf(bindings), ...rest);
  } as Logger['child'];
  root.setBindings = function (this: Logger, bindings) {
    setBindings.call(this, fieldsOf(bindings));
  };
  return root;
}

/** Never waits for its reader: a stuck terminal or journal must not stop the runtime. Flushed at exit. */
function standardError(): DestinationStream {
  return destination({ dest: 2, sync: false, maxLength: LARGEST_BACKLOG });
}

const redacting: LoggerOptions = {
  timestamp: stdTimeFunctions.isoTime,
  formatters: {
    level: (level) => ({ level }),
  },
  // Errors are plain by the time pino would serialise them.
  serializers: { err: (error) => error },
  hooks: {
    logMethod(args, method) {
      const [first, ...rest] = args as [unknown, ...unknown[]];
      if (typeof first === 'string') return method.apply(this, [{}, message(first, rest)]);
      const [text, ...values] = rest;
      const fields = fieldsOf(first instanceof Error ? { err: first } : first);
      const unnamed = 'err' in fields ? 'error' : undefined;
      return method.apply(this, [fields, typeof text === 'string' ? message(text, values) : unnamed]);
    },
  },
};

/** Placeholders are filled before masking, so that no secret slips through in two halves. */
function message(text: string, values: unknown[]): string {
  return maskText(values.length > 0 ? format(text, ...values.map((value) => redact(value))) : text);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  const fields = redact(value);
  return isObject(fields) ? fields : { value: fields };
}

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
function humanLine(json: string, colour: boolean): string {
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
