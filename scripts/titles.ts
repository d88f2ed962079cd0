// Which promises of docs/requirements.md a test names: `[R6] …`, `[R6,R9] …`, `[R6] … [C2] …`. A title that names any
// begins with one; every bracket of it counts. Skipped tests, and tests that are expected to fail, prove nothing.
import { readSource, sourceFiles, strings } from './source.ts';

const TITLE = /^\[[A-Z]\d+(?:\s*,\s*[A-Z]\d+)*\]/;
const BRACKET = /\[([A-Z]\d+(?:\s*,\s*[A-Z]\d+)*)\]/g;
const PROVES_NOTHING = /\.(?:skip|todo|failing)\(\s*$/;

/** The ids that a test's title names, in their order. */
function idsOf(title: string): string[] {
  if (!TITLE.test(title)) return [];
  return [...new Set([...title.matchAll(BRACKET)].flatMap(([, ids = '']) => ids.split(/\s*,\s*/)))];
}

export interface TestWithIds {
  /** Relative to the root. */
  readonly file: string;
  readonly line: number;
  readonly title: string;
  readonly ids: readonly string[];
}

/** Every test below `root` that names a promise. */
export function* testsWithIds(root: string): Generator<TestWithIds> {
  for (const file of sourceFiles(root, 'test')) {
    for (const { text: title, before, line } of strings(readSource(root, file))) {
      const ids = idsOf(title);
      if (ids.length > 0 && !PROVES_NOTHING.test(before)) yield { file, line, title, ids };
    }
  }
}

/** id → the test files with a test that names it. */
export function filesById(root: string): Map<string, string[]> {
  const files = new Map<string, Set<string>>();
  for (const { file, ids } of testsWithIds(root)) {
    for (const id of ids) files.set(id, (files.get(id) ?? new Set<string>()).add(file));
  }
  return new Map([...files].map(([id, set]) => [id, [...set]]));
}
