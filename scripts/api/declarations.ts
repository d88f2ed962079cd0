/**
 * The public interface, read from the declarations that the compiler emits for `exports` of package.json: what somebody who
 * installs the package compiles against. TypeScript 7 has no compiler API that is stable, and neither API Extractor nor
 * TypeDoc runs with it; the parser is rolldown's.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DeclarationFile, type Declared } from './declaration-file.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What the package promises for an export: `public` keeps its meaning within a version, `experimental` may change in any. */
export type Stability = 'public' | 'experimental';

/** One name that an entry point exports. */
export interface PublicExport extends Declared {
  readonly name: string;
  /** Undefined for an export without a tag, or with both. */
  readonly stability: Stability | undefined;
}

/** One path of `exports`, e.g. `holdfast/testing`. */
export interface EntryPoint {
  readonly specifier: string;
  readonly exports: readonly PublicExport[];
}

export interface PublicInterface {
  readonly entries: readonly EntryPoint[];
  /** Declarations that are not exported themselves but are a part of what is, by name. */
  readonly reached: readonly (Declared & { readonly name: string })[];
}

/** Emits the declarations into a folder of its own, without checking types (`npm run types` does), and reads them. */
export function readPublicInterface(): PublicInterface {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-declarations-'));
  try {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const build = ['-p', join(root, 'tsconfig.build.json'), '--emitDeclarationOnly', '--noCheck'];
    const maps = ['--declarationMap', 'false', '--sourceMap', 'false'];
    // In one thread, and without collecting garbage of which there is less than 1 GiB: a third of the processor's time.
    execFileSync(process.execPath, [tsc, ...build, ...maps, '--singleThreaded', '--outDir', dir], {
      env: { ...process.env, GOGC: 'off', GOMEMLIMIT: '1GiB' },
    });
    return interfaceOf(entryFiles(dir));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** The declaration file of every path of `exports`, in their order. */
function entryFiles(dir: string): Map<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const files = new Map<string, string>();
  for (const [path, target] of Object.entries<{ types?: string }>(exports)) {
    if (target.types === undefined) continue;
    const file = target.types.replace(/^\.\/dist/, dir);
    const [before = '', after] = file.split('*');
    const specifier = path.replace(/^\./, name);
    if (after === undefined) files.set(specifier, file);
    else
      for (const one of readdirSync(before).sort())
        files.set(specifier.replace('*', one), before + one + after);
  }
  return files;
}

/** @param entries the declaration files of the entry points, by specifier */
export function interfaceOf(entries: ReadonlyMap<string, string>): PublicInterface {
  const read = new Map<string, DeclarationFile>();
  const open = (file: string): DeclarationFile => {
    const known = read.get(file) ?? new DeclarationFile(file, readFileSync(file, 'utf8'));
    read.set(file, known);
    return known;
  };
  const listed = [...entries].map(([specifier, file]) => ({
    specifier,
    exports: open(file)
      .exportedNames()
      .map((name) => exportOf(name, open(file).find(name, open)))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  }));
  const exported = listed.flatMap((entry) => entry.exports);
  const seen = new Set(exported.map(({ id }) => id));
  const queue: Declared[] = [...exported];
  const reached: (Declared & { name: string })[] = [];
  for (const declared of queue) {
    for (const { name, file } of declared.references) {
      const next = open(file).find(name, open);
      if (seen.has(next.id)) continue;
      seen.add(next.id);
      queue.push(next);
      if (next.text !== '') reached.push({ ...next, name });
    }
  }
  return { entries: listed, reached: reached.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

function exportOf(name: string, declared: Declared): PublicExport {
  const tags = [...declared.comment.matchAll(/@(public|experimental)\b/g)].map(([, tag]) => tag as Stability);
  return { ...declared, name, stability: tags.length === 1 ? tags[0] : undefined };
}
