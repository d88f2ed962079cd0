/** What a person types to find texts of records: words, `-words`, and expressions that cannot hold anything up. */
import type { TextPattern } from './select.ts';

/** The longest pattern, characters. */
const LONGEST_PATTERN = 200;

/** Makes the error of a pattern that is none. */
export type Refuse = (reason: string) => Error;

/**
 * A text, found in any case; or `/expression/`, case-sensitive, in JavaScript's syntax as far as it runs in linear time (no
 * back-references, no lookaround, no flags).
 *
 * @throws what `refuse` makes: it is too long, or an expression that cannot run in linear time
 */
export function textPattern(source: string, refuse: Refuse): TextPattern {
  if (source.length > LONGEST_PATTERN)
    throw refuse(`a pattern has at most ${LONGEST_PATTERN} characters, and this one ${source.length}`);
  const expression = /^\/(.+)\/([a-z]*)$/s.exec(source);
  if (!expression) {
    const wanted = source.toLowerCase();
    return { source, test: (text) => text.toLowerCase().includes(wanted) };
  }
  const [, body = '', flags = ''] = expression;
  if (flags !== '') throw refuse(`${source}: an expression has no flags; a plain text is found in any case`);
  try {
    const regex = linearExpression(body);
    return { source, test: (text) => regex.test(text) };
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : String(error));
  }
}

/** By V8's engine without backtracking, which refuses what it cannot run in linear time; a page of its own has only the usual one. */
function linearExpression(body: string): RegExp {
  const v8 = globalThis.process?.getBuiltinModule?.('node:v8');
  if (!v8) return new RegExp(body);
  v8.setFlagsFromString('--enable-experimental-regexp-engine');
  return new RegExp(body, 'l');
}

/** What a text must have, and what it must not. */
export interface TextFilter {
  readonly wanted: readonly TextPattern[];
  readonly unwanted: readonly TextPattern[];
}

/** A word, `"several words"` or `/an expression/`; with `-` before it what has it is left out. */
const TERM = /(-?)(?:"([^"]*)"|(\/(?:[^/\\]|\\.)+\/[a-z]*(?=\s|$))|(\S+))/g;

/**
 * What stands in a search field: every term must be found, and none that begins with `-`.
 *
 * @throws what `refuse` makes: a term is no pattern, or nothing is searched for
 */
export function textFilter(source: string, refuse: Refuse): TextFilter {
  const filter: { wanted: TextPattern[]; unwanted: TextPattern[] } = { wanted: [], unwanted: [] };
  for (const [, minus, quoted, expression, word] of source.matchAll(TERM)) {
    const text = quoted ?? expression ?? word ?? '';
    if (text === '') continue;
    filter[minus === '-' ? 'unwanted' : 'wanted'].push(textPattern(text, refuse));
  }
  if (filter.wanted.length + filter.unwanted.length === 0) throw refuse('nothing is searched for');
  return filter;
}
