// Runs test files, with a change in the code or without one, and says what came of it.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MutatedFile } from './mutation.ts';

/** A test file, and the id that the titles of the tests to run must name. */
export interface Tests {
  readonly file: string;
  readonly id?: string | undefined;
  /** Or the title of the only one. */
  readonly title?: string | undefined;
}

export type TrialOutcome =
  | { readonly kind: 'passed' }
  /** `by`: the title of the first test that failed; absent when the process ended, whose `why` says how. */
  | { readonly kind: 'failed'; readonly by?: string; readonly why: string }
  | { readonly kind: 'timed out' }
  /** None of the processes has loaded the changed file. */
  | { readonly kind: 'not loaded' };

export interface Trial {
  readonly outcome: TrialOutcome;
  /** The sources that its processes have loaded, relative to the root; of a changed one only that. */
  readonly loads: ReadonlySet<string>;
  readonly tookMs: number;
  readonly output: string;
}

/** AVA's pattern for a title knows `*` only. */
const matching = (id: string): string[] =>
  [`[${id}]`, `[${id},`, `,${id}]`, `,${id},`, `, ${id}]`, `, ${id},`].map((part) => `--match=*${part}*`);

function firstFailure(output: string): { by?: string; why: string } {
  const failed = /✘ \[fail\]: (.*)$/m.exec(output)?.[1];
  if (failed === undefined)
    return { why: /^\s*✘ (.*)$/m.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'no output' };
  // The report repeats the title on a line of its own, without what went wrong.
  const titles = [...output.matchAll(/^ {2}(\S.*)$/gm)].map(([, title = '']) => title);
  const by = titles.find((title) => failed.startsWith(title));
  return { ...(by !== undefined && { by }), why: by ?? failed };
}

/**
 * Runs one test file.
 * @param root the checkout
 * @param limitMs after so long its processes are killed
 */
export async function tryTests(
  root: string,
  { file, id, title }: Tests,
  { mutated, limitMs }: { readonly mutated?: MutatedFile | undefined; readonly limitMs: number },
): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
  const note = join(folder, 'loaded');
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', TMPDIR: folder };
  const order = join(folder, 'mutation.json');
  const below = `${pathToFileURL(root).href}/`;
  const change = mutated && { url: `${below}${mutated.file}`, text: mutated.text };
  writeFileSync(order, JSON.stringify({ ...change, sources: `${below}src/`, note }));
  const preload = new URL('load-mutated.mjs', import.meta.url);
  env.NODE_OPTIONS = `--import=${preload.href}?${encodeURIComponent(order)}`;
  const args = [
    file,
    '--fail-fast',
    '--concurrency=1',
    ...(title !== undefined ? [`--match=${title}`] : id !== undefined ? matching(id) : []),
  ];
  const began = performance.now();
  try {
    const { code, output } = await run(root, args, env, limitMs);
    const notes = existsSync(note) ? readFileSync(note, 'utf8').trim().split('\n') : [];
    const loads = new Set(notes.map((url) => url.slice(below.length)));
    const loaded = mutated === undefined || loads.has(mutated.file);
    // AVA itself gives up when no test has ended for long.
    const isLate = code === undefined || /^\s*✘ Timed out while running tests/m.test(output);
    const outcome: TrialOutcome = isLate
      ? { kind: 'timed out' }
      : !loaded
        ? { kind: 'not loaded' }
        : code === 0
          ? { kind: 'passed' }
          : { kind: 'failed', ...firstFailure(output) };
    return { outcome, loads, tookMs: performance.now() - began, output };
  } finally {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // What was killed may have left a process or a mounted disk in it: the system's temporary folder keeps it.
    }
  }
}

/** @returns code `undefined` after `limitMs` */
function run(
  root: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
): Promise<{ code: number | undefined; output: string }> {
  const ava = join(root, 'node_modules', 'ava', 'entrypoints', 'cli.js');
  return new Promise((resolve, reject) => {
    // A group of its own: what the tests have started ends with it.
    const child = spawn(process.execPath, [ava, ...args], {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    let late = false;
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // ended already
      }
    };
    const timer = setTimeout(() => {
      late = true;
      end();
    }, limitMs);
    process.once('exit', end);
    child.on('error', reject);
    child.on('exit', (code) => {
      clearTimeout(timer);
      // Output may still be in the pipe; a process that a test left behind would hold it open for good.
      setTimeout(() => {
        end();
        process.off('exit', end);
        resolve({ code: late ? undefined : (code ?? 1), output });
      }, 50);
    });
  });
}
