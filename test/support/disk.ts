import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Scope } from './scope.ts';

/** A disk under a child process that a test can hold, fill, and watch. */
export interface Disk {
  readonly env: Readonly<Record<string, string>>;
  /** Lines `<thread id> <process id>`, one a sync. */
  readonly traceFile: string;
  hold(): void;
  release(): void;
  /** @param where part of the path of files that cannot be written; databases unless told */
  fill(where?: string): void;
  free(): void;
  /** As a file system does after an error: everything can be read, nothing written. */
  freeze(): void;
  thaw(): void;
}

/** Builds the preloaded library into a test's folder. @param delayMs how much longer every sync takes */
export function fakeDisk(dir: string, delayMs = 0): Disk {
  const library = join(dir, 'disk.so');
  const source = new URL('./disk.c', import.meta.url).pathname;
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  const held = join(dir, 'held');
  const full = join(dir, 'full');
  const readOnly = join(dir, 'read-only');
  const traceFile = join(dir, 'syncs');
  return {
    env: {
      LD_PRELOAD: library,
      DISK_HOLD: held,
      DISK_FULL: full,
      DISK_READONLY: readOnly,
      DISK_TRACE: traceFile,
      DISK_DELAY_MS: String(delayMs),
    },
    traceFile,
    hold: () => writeFileSync(held, ''),
    release: () => rmSync(held, { force: true }),
    fill: (where = '') => writeFileSync(full, where),
    free: () => rmSync(full, { force: true }),
    freeze: () => writeFileSync(readOnly, ''),
    thaw: () => rmSync(readOnly, { force: true }),
  };
}

/** A child process that speaks in lines, killed when its test ends. */
export interface Child {
  readonly process: ChildProcess;
  readonly lines: readonly string[];
  /** What it wrote on standard error. */
  readonly errors: readonly string[];
  /** Resolves with the first line that fits, past or future; rejects when the child ends without one. */
  line(pattern: RegExp): Promise<string>;
  say(line: string): void;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a script of ours, or `bin/holdfast.js`, under this Node. */
export function startChild(
  t: Scope,
  script: URL,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Child {
  const child = spawn(process.execPath, [script.pathname, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  void ended.then(wake);
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    wake();
  });
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    process: child,
    lines,
    errors,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = lines.find((line) => pattern.test(line));
          if (found === undefined && child.exitCode === null && child.signalCode === null) return;
          waiting.delete(check);
          if (found !== undefined) resolve(found);
          else
            reject(
              new Error(
                `the child ended (${child.exitCode ?? child.signalCode}) without ${pattern}:\n${errors.join('\n')}`,
              ),
            );
        };
        waiting.add(check);
        check();
      }),
    say: (line) => child.stdin.write(`${line}\n`),
    async kill(signal) {
      child.kill(signal);
      await ended;
    },
  };
}
