import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { ColumnarError } from './errors.ts';

/** What a statement that only reads begins with. */
const READING = ['SELECT', 'WITH', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS', '('];

/**
 * Functions, as a column or as a table, that read something else than the tables of this database: files, addresses,
 * other servers, programs, dictionaries. Some of them work even where the engine is read-only.
 */
const OUTSIDE =
  /^(file\w*|url\w*|remote\w*|cluster\w*|s3\w*|gcs|oss|cosn|hdfs\w*|azure\w*|iceberg\w*|delta\w*|hudi\w*|paimon\w*|ytsaurus|mysql|postgresql|sqlite|mongodb|redis|jdbc|odbc|executable\w*|python|input|merge|mergetree\w*|dictionary|dictget\w*|dicthas|dictisin|catboostevaluate|arrow\w*|ai(?:classify|embed|extract|generate|translate)|eval|getclienthttpheader|prometheus\w*|timeseries\w*|fuzz\w*|loop|view\w*if|joinget\w*|filesystem\w*|getserverport|getserversetting|getmacro|hostname|fqdn|displayname|getoskernelversion|serveruuid|zookeeper\w*|sleep\w*|currentprofiles|showcertificate|addressto\w*|trap|logtrace)$/i;

/** Functions that take another one by its name alone: `arrayMap(file, …)`; names of columns are rarely both. */
const TAKES_A_FUNCTION = /^(array|map)[a-z]+$/i;

/** What SHOW may show; the rest (queries of others, users, grants, settings) describes the server. */
const SHOWN = /^(tables?|databases?|columns|fields|index(es)?|indices|keys|views?|full|extended|temporary)$/i;

/** Databases about the server instead of the signals: settings, users, queries of others. */
const FORBIDDEN_DATABASES = /^(system|information_schema)$/i;

export interface Token {
  readonly kind: 'word' | 'text' | 'sign';
  readonly value: string;
}

/**
 * Accepts only a single statement that reads the tables of the database. The engine is read-only too; this check covers
 * what read-only mode does not, and explains the refusal.
 *
 * @returns the statement without what ends it
 * @throws HF_COLUMNAR_REFUSED
 */
export function readingStatement(sql: string): string {
  const text = sql.trim().replace(/(\s*;)+$/, '');
  const tokens = tokensOf(text);
  const [first] = tokens;
  if (!first) throw refused('it is empty');
  if (!READING.includes(first.value.toUpperCase()))
    throw refused(`it begins with ${first.value.slice(0, 20)}, and only reading is allowed`);
  for (const [at, { kind, value }] of tokens.entries()) {
    const next = tokens[at + 1]?.value;
    const previous = tokens[at - 1]?.value;
    const word = value.toUpperCase();
    if (kind === 'sign' && value === ';') throw refused('it is more than one statement');
    if (kind !== 'word') continue;
    if (FORBIDDEN_DATABASES.test(value) && (next === '.' || /^(FROM|IN)$/i.test(previous ?? '')))
      throw refused(`it reads the database ${value}, which describes the server`);
    if (OUTSIDE.test(value) && next === '(')
      throw refused(`it calls ${value}(), which reads something else than the tables here, or does not read`);
    if (OUTSIDE.test(value) && isGivenAsFunction(tokens, at))
      throw refused(`it applies ${value}, which reads something else than the tables here, or does not read`);
    if (word === 'SHOW' && (at === 0 || previous === '(')) mayShow(tokens, at + 1);
    if (word === 'AST' && previous?.toUpperCase() === 'EXPLAIN')
      throw refused(
        'EXPLAIN AST is no table; EXPLAIN alone, or with PIPELINE or indexes = 1, says how it is run',
      );
    if (word === 'PARALLEL' && next?.toUpperCase() === 'WITH') throw refused('it is more than one statement');
    if (word === 'OUTFILE' && previous?.toUpperCase() === 'INTO') throw refused('it writes a file');
    if (word === 'FORMAT' && /^\w+$/.test(next ?? '') && previous !== ',' && previous !== '.')
      throw refused('it asks for a FORMAT of its own; leave that out, and use --json for JSON');
    if (word === 'SETTINGS' && /^\w+$/.test(next ?? '') && tokens[at + 2]?.value === '=')
      throw refused('it sets SETTINGS of its own; limits are given by --timeout and --limit');
  }
  return text;
}

/** `* APPLY file`, `* APPLY(file)`, `arrayMap((file), …)`: a function without parentheses of its own. */
function isGivenAsFunction(tokens: readonly Token[], at: number): boolean {
  let before = at - 1;
  while (tokens[before]?.value === '(') before -= 1;
  const taker = tokens[before];
  if (taker?.kind !== 'word') return false;
  return /^apply$/i.test(taker.value) || (before < at - 1 && TAKES_A_FUNCTION.test(taker.value));
}

/** @throws HF_COLUMNAR_REFUSED */
function mayShow(tokens: readonly Token[], at: number): void {
  const shown = tokens[at]?.value.toUpperCase() === 'CREATE' ? tokens[at + 1] : tokens[at];
  if (shown?.kind === 'word' && !SHOWN.test(shown.value))
    throw refused(`it shows ${shown.value.slice(0, 20)}, which describes the server`);
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

function refused(reason: string): HoldfastError {
  return new ColumnarError('HF_COLUMNAR_REFUSED', { reason });
}
