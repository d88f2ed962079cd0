import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { ColumnarError } from '../errors.ts';

/** A part of a statement's text. */
export interface Token {
  readonly kind: 'word' | 'text' | 'sign';
  readonly value: string;
}

/**
 * Splits SQL into words (quoted names among them), texts and signs; comments and spaces are left out. What the engine would
 * split in another way is refused: for it comments nest, and typographic quotes are quotes.
 *
 * @throws HF_COLUMNAR_REFUSED
 */
export function tokensOf(sql: string): Token[] {
  const pattern =
    /--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?\*\/|\/\*|'(?:[^'\\]|\\[\s\S]|'')*'|`((?:[^`\\]|\\[\s\S]|``)*)`|"((?:[^"\\]|\\[\s\S]|"")*)"|([A-Za-z_][\w$]*)|\d[\w.]*|\$\w*\$|\S/gu;
  const tokens: Token[] = [];
  for (const [value, backquoted, quoted, word] of sql.matchAll(pattern)) {
    const name = backquoted ?? quoted ?? word;
    if (name !== undefined) tokens.push({ kind: 'word', value: unescaped(name) });
    else if (value === '/*') throw refused('a comment in it has no end');
    else if (value.startsWith('/*') && value.includes('/*', 2))
      throw refused('a comment in it holds another one');
    else if (/^(--|#[ !]|\/\*)/.test(value)) continue;
    else if (value.startsWith("'") && value.length > 1) tokens.push({ kind: 'text', value });
    else if (value.startsWith('$')) throw refused('it holds a text between $ signs');
    else if (/^['"`]$/.test(value)) throw refused(`a ${value} in it has no end`);
    else if (value > '\u007f')
      throw refused(`${value} in it belongs between quotes, and quotes are ' " and \``);
    else tokens.push({ kind: 'sign', value });
  }
  return tokens;
}

/** To the engine `fi\\x6ce` between backquotes is `file`. */
function unescaped(name: string): string {
  if (name.includes('\\')) throw refused('a name in it holds a backslash');
  return name;
}

/** @param reason continues "This query is not run: " */
export function refused(reason: string): HoldfastError {
  return new ColumnarError('HF_COLUMNAR_REFUSED', { reason });
}
