// What a list of mutations says, and how one of them is found in the sources. A mutation names a text, never a line or a
// file: it survives code that moves, and a text that is gone or stands twice fails the run by name.
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** One change of the code that must not go unnoticed. */
export interface Mutation {
  /** What the changed code does wrong, e.g. `a key without "Bearer " is admitted`. */
  readonly breaks: string;
  /**
   * The code to change. White space and a last comma do not matter; `$1` … `$9` each for one name or dotted path, which may
   * stand more than once.
   */
  readonly find: string;
  /** What comes in its place; may use `$1` … `$9`. */
  readonly put: string;
  /** The promise of docs/requirements.md that is broken: only tests with this id in their titles count. */
  readonly id?: string;
  /** Parts of the paths of the test files that count. Without it: all files with a test of `id`. */
  readonly tests?: readonly string[];
}

/** Changes that the tests of the same files must notice. @param tests parts of their paths */
export function noticedBy(
  tests: readonly string[],
  mutations: readonly Omit<Mutation, 'tests'>[],
): readonly Mutation[] {
  return mutations.map((mutation) => ({ ...mutation, tests }));
}

/** A change that can't be seen from outside, so that no test can notice it. */
export interface Equivalent extends Pick<Mutation, 'find' | 'put'> {
  /** Why nobody can see it: a reader must be able to check it. */
  readonly because: string;
}

/** One part of the product, with the changes that its tests must notice. */
export interface Area {
  /** Files and folders of `src` that hold the texts of `mutations`. */
  readonly sources: readonly string[];
  readonly mutations: readonly Mutation[];
  /** Changes made by rule in each file below these paths, and the test files that must notice. */
  readonly automatic: {
    readonly sources: readonly string[];
    readonly tests: readonly string[];
    /** Those of them that are not tried. */
    readonly equivalent?: readonly Equivalent[];
  };
}

/** One file with one change in it. */
export interface MutatedFile {
  /** Relative to the root. */
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** A mutation that can't be tried: the list has to be corrected. */
export class StaleMutation extends Error {}

const NAME = '#?[\\w$]+(?:\\??\\.#?[\\w$]+)*';

/** Formatters break lines and add a last comma where they like. */
function pattern(find: string): RegExp {
  const seen = new Set<string>();
  const parts = [...find.matchAll(/\$[1-9](?![\w$])|[\w$]+|\S/g)].map(([part]) => {
    if (/^[)\]}]$/.test(part)) return `,?\\s*\\${part}`;
    if (!/^\$[1-9]$/.test(part)) return part.replace(/[\\^$.*+?([{|/]/g, '\\$&');
    const group = `n${part[1]}`;
    if (seen.has(group)) return `\\k<${group}>`;
    seen.add(group);
    return `(?<${group}>${NAME})`;
  });
  // A text that begins or ends inside of a longer word is another text.
  const before = /^[\w$]/.test(find.trim()) ? '(?<![\\w$])' : '';
  const after = /[\w$]$/.test(find.trim()) ? '(?![\\w$])' : '';
  return new RegExp(before + parts.join('\\s*') + after, 'g');
}

/**
 * Makes the change in memory.
 * @param root the checkout
 * @param files where the text may stand, relative to `root`
 * @throws StaleMutation when the text is not there exactly once, or what comes out is no TypeScript
 */
export function mutate(
  root: string,
  files: readonly string[],
  mutation: Pick<Mutation, 'find' | 'put'>,
): MutatedFile {
  const hits = files.flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8');
    return [...source.matchAll(pattern(mutation.find))].map((match) => ({ file, source, match }));
  });
  const [hit] = hits;
  if (hit === undefined)
    throw new StaleMutation(`"${mutation.find}" stands nowhere in ${files.length} files`);
  const lineOf = (source: string, index: number): number => source.slice(0, index).split('\n').length;
  if (hits.length > 1) {
    const places = hits.map(({ file, source, match }) => `${file}:${lineOf(source, match.index)}`);
    throw new StaleMutation(`"${mutation.find}" stands ${hits.length} times: ${places.join(', ')}`);
  }
  const { file, source, match } = hit;
  const put = mutation.put.replace(/\$([1-9])/g, (_, digit: string) => match.groups?.[`n${digit}`] ?? '');
  const text = source.slice(0, match.index) + put + source.slice(match.index + match[0].length);
  return checked({ file, line: lineOf(source, match.index), text });
}

/** @throws StaleMutation when it is no TypeScript: every test would fail, whatever it tests */
export function checked(mutated: MutatedFile): MutatedFile {
  if (!mutated.file.endsWith('.ts')) return mutated;
  try {
    stripTypeScriptTypes(mutated.text);
  } catch (error) {
    throw new StaleMutation(`${mutated.file}:${mutated.line} is no TypeScript any more: ${String(error)}`);
  }
  return mutated;
}
