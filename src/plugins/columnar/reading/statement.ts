import { SIGNAL_TABLES } from '../../../core/contracts/columnar-tables.ts';
import { ALLOWED_TABLES, HIGHER_ORDER, mayCall, REFUSED, REFUSED_TABLES } from './functions.ts';
import { refused, type Token, tokensOf } from './tokens.ts';
import { type Node, treeOf } from './tree.ts';

/** What the check asks of the database. */
export interface ReadingAccess {
  /** The only database that may be read. */
  readonly database: string;
  /** The statement as the engine writes it: without comments, each name and text in one way of quoting. @throws what the engine throws */
  canonical(sql: string): Promise<string>;
  /** What `EXPLAIN AST` prints. @throws what the engine throws */
  tree(sql: string): Promise<readonly string[]>;
  /** The other tables of the database by their engines. */
  engines(): Promise<ReadonlyMap<string, string>>;
}

/** What a statement that only reads begins with. */
const READING = ['SELECT', 'WITH', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS', '('];

/** Nodes of a SELECT, each of which shows its parts as its children or is looked at below. */
const PARTS_OF_SELECT = new Set(
  `SelectWithUnionQuery SelectIntersectExceptQuery SelectQuery ExpressionList Subquery WithElement
   TablesInSelectQuery TablesInSelectQueryElement TableExpression TableIdentifier TableJoin ArrayJoin SampleRatio
   Function Identifier Literal Asterisk QualifiedAsterisk ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher
   QualifiedColumnsListMatcher ColumnsTransformerList ColumnsApplyTransformer ColumnsExceptTransformer ColumnsReplaceTransformer
   ColumnsReplaceTransformer::Replacement WindowDefinition WindowListElement OrderByElement InterpolateElement`.split(
    /\s+/,
  ),
);
const COMPARES_WITH_TABLE = /^(global)?(not)?(null)?in(ignoreset)?$/i;
/** Table engines that keep rows in the database, or read tables that its operator named. */
const KEEPS_ROWS = /(MergeTree|^Memory|^Buffer|^Distributed|^View|^MaterializedView)$/;
const EXPLAINS = /^EXPLAIN( (PLAN|PIPELINE|ESTIMATE|SYNTAX|QUERY TREE))?$/;
const SHOWN = /^(TABLES|DATABASES|COLUMNS|FIELDS|INDEX|INDEXES|INDICES|KEYS)$/;
const FULLER = /^(FULL|EXTENDED|TEMPORARY)$/;
const NAME = /^[\w$-]+(\.[\w$-]+)?$/;

/**
 * Accepts only a single statement that reads tables of the one database with functions that are known to reach nowhere else. The
 * engine itself says what the statement holds; what is on no list is refused by its name. No part of the statement is evaluated.
 *
 * @returns the statement as it was checked, which is what may be run
 * @throws HF_COLUMNAR_REFUSED; what the engine throws, such as a syntax error
 */
export async function readingStatement(sql: string, access: ReadingAccess): Promise<string> {
  const typed = sql.trim().replace(/(\s*;)+$/, '');
  const asTyped = tokensOf(typed);
  beginsReading(asTyped);
  if (asTyped.some(({ kind, value }) => kind === 'sign' && value === ';'))
    throw refused('it is more than one statement');
  const statement = await access.canonical(typed);
  const tokens = tokensOf(statement);
  beginsReading(tokens);
  checkTokens(tokens);
  const root = treeOf(await access.tree(statement));
  await checkNames(checkRoot(root, tokens, access.database), tokens, access);
  return statement;
}

/** @throws HF_COLUMNAR_REFUSED */
function beginsReading([first]: readonly Token[]): void {
  if (!first) throw refused('it is empty');
  if (!READING.includes(first.value.toUpperCase()))
    throw refused(`it begins with ${first.value.slice(0, 20)}, and only reading is allowed`);
}

/** What can be explained best from the text; the tree refuses all of it as well. @throws HF_COLUMNAR_REFUSED */
function checkTokens(tokens: readonly Token[]): void {
  for (const [at, { kind, value }] of tokens.entries()) {
    const next = tokens[at + 1]?.value ?? '';
    const previous = tokens[at - 1]?.value ?? '';
    const word = value.toUpperCase();
    if (kind !== 'word') continue;
    if (next === '(' && (REFUSED.has(value.toLowerCase()) || REFUSED_TABLES.has(value.toLowerCase()))) {
      if (!mayCall(value)) throw refusedFunction(value);
    }
    if (word === 'AST' && /^EXPLAIN$/i.test(previous))
      throw refused(
        'EXPLAIN AST is no table; EXPLAIN alone, or with PIPELINE or indexes = 1, says how it is run',
      );
    if (word === 'PARALLEL' && /^WITH$/i.test(next)) throw refused('it is more than one statement');
    if (word === 'OUTFILE' && /^INTO$/i.test(previous)) throw refused('it writes a file');
    if (value === 'FORMAT' && /^\w+$/.test(next) && previous !== ',' && previous !== '.')
      throw refused('it asks for a FORMAT of its own; leave that out, and use --json for JSON');
    if (value === 'SETTINGS' && /^\w+$/.test(next) && tokens[at + 2]?.value === '=')
      throw refused('it sets SETTINGS of its own; limits are given by --timeout and --limit');
  }
}

/** @returns the parts that a SELECT may consist of @throws HF_COLUMNAR_REFUSED */
function checkRoot(root: Node, tokens: readonly Token[], database: string): readonly Node[] {
  const { kind, name, children } = root;
  if (kind === 'Explain') {
    if (!EXPLAINS.test(name)) throw refused(`it asks for ${name}`);
    const [query, ...more] = children.filter(({ kind }) => kind !== 'Set');
    if (!query || more.length > 0) throw refused(`it asks for ${name} of something else than one query`);
    return checkRoot(query, tokens, database);
  }
  if (kind === 'SelectWithUnionQuery' || kind === 'SelectIntersectExceptQuery') return [root];
  if (kind === 'DescribeQuery') return children;
  if (kind === 'ExistsTableQuery' || kind === 'ShowCreateTableQuery') {
    const table = children.map((child) => child.name).join('.');
    return [{ kind: 'TableIdentifier', name: table, children: [] }];
  }
  if (kind === 'ShowTables' || kind === 'ShowColumns' || kind === 'ShowIndexes')
    return shownTables(tokens, database);
  throw refused(`it is a ${kind}, which describes the server or does not read`);
}

/** The tree does not tell what such a statement shows. @throws HF_COLUMNAR_REFUSED */
function shownTables(tokens: readonly Token[], database: string): readonly Node[] {
  const words = tokens.map(({ kind, value }) => (kind === 'word' ? value.toUpperCase() : value));
  let at = 1;
  while (FULLER.test(words[at] ?? '')) at += 1;
  const shown = words[at] ?? '';
  if (!SHOWN.test(shown)) throw refused(`it shows ${shown.slice(0, 20)}, which describes the server`);
  if (words.includes('WHERE')) throw refused('it has a WHERE behind SHOW; use LIKE');
  const places: string[] = [];
  for (at += 1; /^(FROM|IN)$/.test(words[at] ?? ''); at += 2) {
    let place = tokens[at + 1]?.value ?? '';
    for (; words[at + 2] === '.'; at += 2) place += `.${tokens[at + 3]?.value ?? ''}`;
    places.push(place);
  }
  if (shown === 'DATABASES') return [];
  const [table] = shown === 'TABLES' ? [] : places.splice(0, 1);
  for (const name of places) if (name !== database) throw refusedDatabase(name);
  return table === undefined ? [] : [{ kind: 'TableIdentifier', name: table, children: [] }];
}

/** @throws HF_COLUMNAR_REFUSED */
async function checkNames(
  roots: readonly Node[],
  tokens: readonly Token[],
  access: ReadingAccess,
): Promise<void> {
  const tables = new Set<string>();
  const transformers = roots.reduce((sum, root) => sum + checkNode(root, 'DescribeQuery', tables), 0);
  if (transformers > 0) checkApplied(tokens, transformers);
  const others = [...tables].filter((name) => !SIGNAL_TABLES.some((table) => table === plain(name, access)));
  if (others.length === 0) return;
  const engines = await access.engines();
  for (const name of others) {
    const engine = engines.get(plain(name, access));
    if (engine !== undefined && !KEEPS_ROWS.test(engine))
      throw refused(`it reads ${name}, a table of the engine ${engine}, whose rows are not in this database`);
  }
}

/** A table's name without the database, which it may bear. @throws HF_COLUMNAR_REFUSED */
function plain(name: string, { database }: ReadingAccess): string {
  const [first = '', second] = name.split('.');
  if (second !== undefined && first !== database) throw refusedDatabase(first);
  if (!NAME.test(name)) throw refused(`it reads ${name.slice(0, 60)}, which is no name of a table here`);
  return second ?? first;
}

/**
 * @param tables names of tables are added to it
 * @returns how many transformers do not show what they apply @throws HF_COLUMNAR_REFUSED
 */
function checkNode({ kind, name, children }: Node, parent: string, tables: Set<string>): number {
  if (!PARTS_OF_SELECT.has(kind)) throw refused(`it holds ${kind}, which is not known to only read`);
  if (kind === 'SelectWithUnionQuery' && children.length !== 1)
    throw refused('it writes a file, or sets a format or settings of its own');
  if (kind === 'TableIdentifier') tables.add(name);
  if (kind === 'Function') {
    const known = parent === 'TableExpression' ? ALLOWED_TABLES.has(name.toLowerCase()) : mayCall(name);
    if (!known) throw refusedFunction(name);
    checkArguments(name, children[0]?.children ?? [], tables);
  }
  const hidden = kind === 'ColumnsApplyTransformer' ? 1 : 0;
  return children.reduce((sum, child) => sum + checkNode(child, kind, tables), hidden);
}

/** An argument may be a function's name, or a table's. @throws HF_COLUMNAR_REFUSED */
function checkArguments(name: string, values: readonly Node[], tables: Set<string>): void {
  const [first, second] = values;
  if (HIGHER_ORDER.has(name.toLowerCase()) && second && first?.kind === 'Identifier' && !mayCall(first.name))
    throw refusedFunction(first.name);
  if (COMPARES_WITH_TABLE.test(name) && second?.kind === 'Identifier') tables.add(second.name);
}

/** `* APPLY file`, `* APPLY(file)`: the tree does not say what is applied. @throws HF_COLUMNAR_REFUSED */
function checkApplied(tokens: readonly Token[], expected: number): void {
  let found = 0;
  for (const [at, { value }] of tokens.entries()) {
    if (value.toUpperCase() !== 'APPLY') continue;
    const opens = tokens[at + 1]?.value === '(';
    const applied = tokens[opens ? at + 2 : at + 1];
    const after = tokens[at + 3]?.value;
    if (applied?.kind !== 'word' || !mayCall(applied.value)) throw refusedFunction(applied?.value ?? 'APPLY');
    if (opens && after !== ')' && after !== '(')
      throw refused('it applies a lambda; name a function instead');
    found += 1;
  }
  if (found !== expected) throw refused('it applies what cannot be told from its text');
}

function refusedFunction(name: string): Error {
  return refused(`it calls ${name.slice(0, 60)}(), which is not among the functions that only compute`);
}

function refusedDatabase(name: string): Error {
  return refused(`it reads the database ${name.slice(0, 60)}, which is not the one of the signals`);
}
