import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { runCommandLine } from '../../src/cli/run.ts';
import type { Scope } from './scope.ts';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** What a command line left behind. */
export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CallOptions {
  /** The working directory; it must have no `plugins.config.ts` unless the test wants it. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** As on a terminal: lines are broken at its width. */
  readonly interactive?: boolean;
  /** As on a terminal that shows colours. */
  readonly colour?: boolean;
  readonly interrupted?: AbortSignal;
  /** The plugins that the program brings; none unless given. */
  readonly builtinPlugins?: NonNullable<Parameters<typeof runCommandLine>[1]['builtinPlugins']>;
  /** What reads the logs of their features; nothing unless given. */
  readonly logFeatures?: Parameters<typeof runCommandLine>[1]['logFeatures'];
  /** The commands of those plugins that need no configuration; none unless given. */
  readonly standaloneCommands?: Parameters<typeof runCommandLine>[1]['standaloneCommands'];
  /** Sees the output while it comes. */
  readonly onOut?: (text: string) => void;
  /** Sees the passing lines, as a terminal on standard error would. */
  readonly onProgress?: (text: string) => void;
  /** Sees the notes while they come. */
  readonly onErr?: (text: string) => void;
}

/** Runs a command line in this process, on a terminal that keeps what is written. */
export async function call(argv: readonly string[], options: CallOptions): Promise<Finished> {
  const { cwd, env = {}, columns = 100, interactive = false, colour = false } = options;
  const { interrupted, onOut, onErr, onProgress, builtinPlugins, logFeatures, standaloneCommands } = options;
  let out = '';
  let err = '';
  const paint: typeof styleText = (format, text) =>
    colour ? styleText(format, text, { validateStream: false }) : text;
  const code = await runCommandLine(argv, {
    cwd,
    env,
    builtinPlugins,
    logFeatures,
    standaloneCommands,
    interrupted: interrupted ?? new AbortController().signal,
    terminal: {
      out: (text) => {
        out += text;
        onOut?.(text);
      },
      err: (text) => {
        err += text;
        onErr?.(text);
      },
      interactive,
      columns,
      paint,
      paintError: paint,
      watched: onProgress !== undefined,
      progress: (text) => onProgress?.(text),
      closed: new AbortController().signal,
    },
  });
  return { code, out, err };
}

/** A process of `bin/holdfast.js`, ended with the test at the latest. */
export interface Spawned {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly out: () => string;
  readonly err: () => string;
  /** Waits until standard output matches. */
  see(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Resolves when it has ended. */
  readonly ended: Promise<Finished & { readonly signal: NodeJS.Signals | null }>;
}

export function spawnHoldfast(
  t: Pick<Scope, 'teardown'>,
  argv: readonly string[],
  {
    cwd,
    env,
    nodeOptions = [],
  }: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly nodeOptions?: readonly string[];
  },
): Spawned {
  const child = spawn(process.execPath, [...nodeOptions, join(root, 'bin/holdfast.js'), ...argv], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code: code ?? -1, signal, out, err }));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    out: () => out,
    err: () => err,
    ended,
    async see(pattern) {
      const gone = ended.then(() => true);
      for (;;) {
        const match = out.match(pattern);
        if (match) return match;
        const arrived = once(child.stdout, 'data').then(() => false);
        if (await Promise.race([gone, arrived])) {
          const last = out.match(pattern);
          if (last) return last;
          throw new Error(`it ended without ${pattern}:\n${out}\n${err}`);
        }
      }
    },
  };
}

/** Writes a `plugins.config.ts` that imports from this checkout. @param body its statements after the imports */
export function writeConfig(dir: string, body: string, imports: readonly string[] = []): string {
  const file = join(dir, 'plugins.config.ts');
  const lines = [
    `import { defineActor, defineConfig, definePlugin } from 'holdfast';`,
    `import { z } from 'zod';`,
    ...imports,
    body,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
