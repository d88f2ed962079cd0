import { setFlagsFromString } from 'node:v8';
import { HostError } from '../../core/host/errors/host-error.ts';
import { plainText } from '../../core/host/terminal.ts';
import { EFFECT_FAILED, EFFECT_LOST } from '../../core/kernel/actors/effect.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { recordText } from './record-text.ts';
import { shown } from './source.ts';
import type { PluginWords } from './words.ts';

/** The longest pattern, characters. */
const LONGEST_PATTERN = 200;
/** How much of a record's text is searched, characters: more than a line shows of it. */
const LONGEST_TEXT = 4_096;

/** What `--grep` looks for: a text in any case, or a regular expression. */
export interface TextPattern {
  /** As it was given. */
  readonly source: string;
  readonly test: (text: string) => boolean;
}

/**
 * Parses what `--grep` takes: a text, found in any case; or `/expression/`, case-sensitive, in JavaScript's syntax as far as it
 * runs in linear time (no back-references, no lookaround, no flags), so that no expression can hold up the command.
 *
 * @throws HF_CLI_USAGE it is too long, or an expression that cannot run in linear time
 */
export function parsePattern(source: string): TextPattern {
  if (source.length > LONGEST_PATTERN) throw usage(`--grep takes at most ${LONGEST_PATTERN} characters.`);
  const expression = /^\/(.+)\/([a-z]*)$/s.exec(source);
  if (!expression) {
    const wanted = source.toLowerCase();
    return { source, test: (text) => text.toLowerCase().includes(wanted) };
  }
  const [, body = '', flags = ''] = expression;
  if (flags !== '')
    throw usage(`--grep ${source}: an expression has no flags; a plain text is found in any case.`);
  // V8's engine without backtracking refuses what it cannot run in linear time.
  setFlagsFromString('--enable-experimental-regexp-engine');
  try {
    const regex = new RegExp(body, 'l');
    return { source, test: (text) => regex.test(text) };
  } catch (error) {
    throw usage(`--grep: ${error instanceof Error ? error.message : error}.`);
  }
}

function usage(reason: string): HoldfastError {
  return new HostError('HF_CLI_USAGE', { reason: plainText(reason), command: 'log list' });
}

/**
 * The text of a record as its line prints it: actor, what happened, states and effects.
 *
 * @param all as with `--all`
 */
export async function printedText(record: LogRecord, words: PluginWords, all: boolean): Promise<string> {
  await words.prepare([record]);
  const printable = shown(record);
  const { what, state, effects } = recordText(printable, words.describe(printable) || undefined, all);
  const requested = effects.length > 0 ? `⇒ ${effects.join(', ')}` : '';
  return [plainText(printable.actor), what, state, requested]
    .filter(Boolean)
    .join('  ')
    .slice(0, LONGEST_TEXT);
}

/** Whether a machine threw, or an effect failed or was lost with the process. */
export function isFailure({ event, failed }: LogRecord): boolean {
  return failed !== undefined || event.type === EFFECT_FAILED || event.type === EFFECT_LOST;
}
