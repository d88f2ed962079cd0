// Runs test files, with a change in the code or without one, and says what came of it.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MutatedFile } from './mutation.ts';

/** A test file, and the id that the titles of the tests to run must name. */
export interface Tests {
  readonly file: string;
  readonly id?: string | undefined;
}

export type TrialOutcome =
  | { readonly kind: 'passed' }
  /** `by`: the first test that failed. */
  | { readonly kind: 'failed'; readonly by: string }
  | { readonly kind: 'timed out' }
  /** None of the processes has loaded the changed file. */
  | { readonly kind: 'not loaded' };

export interface Trial {
  readonly outcome: TrialOutcome;
  readonly tookMs: number;
  readonly output: string;
}

/** AVA's pattern for a title knows `*` only. */
const matching = (id: string): string[] =>
  [`[${id}]`, `[${id},`, `,${id}]`, `,${id},`, `, ${id}]`, `, ${id},`].map((part) => `--match=*${part}*`);

function firstFailure(output: string): string {
  const failed = /✘ \[fail\]: (.*?)(?: \(.*\))?$/m.exec(output)?.[1];
  if (failed !== undefined) return failed.replace(/ Error thrown in test$| Rejected promise.*$/, '');
  return /^\s*✘ (.*)$/m.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'no output';
}

/**
 * Runs one test file.
 * @param root the checkout
 * @param limitMs after so long its processes are killed
 */
export async function tryTests(
  root: string,
  { file, id }: Tests,
  { mutated, limitMs }: { readonly mutated?: MutatedFile | undefined; readonly limitMs: number },
): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
  const note = join(folder, 'loaded');
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', TMPDIR: folder };
  if (mutated !== undefined) {
    const order = join(folder, 'mutation.json');
    const url = pathToFileURL(join(root, mutated.file)).href;
    writeFileSync(order, JSON.stringify({ url, text: mutated.text, note }));
    const preload = new URL('load-mutated.mjs', import.meta.url);
    env.NODE_OPTIONS = `--import=${preload.href}?${encodeURIComponent(order)}`;
  }
  const args = [file, '--fail-fast', '--concurrency=1', ...(id === undefined ? [] : matching(id))];
  const began = performance.now();
  try {
    const { code, output } = await run(root, args, env, limitMs);
    const loaded = mutated === undefined || existsSync(note);
    const outcome: TrialOutcome =
      code === undefined
        ? { kind: 'timed out' }
        : !loaded
          ? { kind: 'not loaded' }
          : code === 0
            ? { kind: 'passed' }
            : { kind: 'failed', by: firstFailure(output) };
    return { outcome, tookMs: performance.now() - began, output };
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
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
