import { setFlagsFromString } from 'node:v8';
import { HostError } from '../../core/host/errors/host-error.ts';
import type { TextPattern } from '../../core/host/history/select.ts';
import { plainText } from '../../core/host/terminal.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';

/** The longest pattern, characters. */
const LONGEST_PATTERN = 200;

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
