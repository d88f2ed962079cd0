import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LeaseChildOptions } from './lease-child.ts';
import type { Scope } from './scope.ts';
import { until } from './until.ts';

const CHILD = fileURLToPath(new URL('lease-child.ts', import.meta.url));

/** Something that a host said, with the time of the machine in milliseconds. */
interface Said {
  readonly at: number;
  readonly text: string;
}

/** A process that competes for the singleton `work`; killed when the test ends. */
export class LeaseHost {
  readonly host: string;
  readonly said: Said[] = [];
  readonly #process: ChildProcess;

  private constructor(host: string, process: ChildProcess) {
    this.host = host;
    this.#process = process;
  }

  static async start(t: Scope, options: LeaseChildOptions): Promise<LeaseHost> {
    const child = spawn(process.execPath, [CHILD, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const host = new LeaseHost(options.host, child);
    t.teardown(() => host.kill());
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, at = '', text = ''] = /^(\S+) (.*)$/.exec(line) ?? [];
      host.said.push({ at: Number(at), text });
    });
    await until(`${options.host} is ready`, () => host.said.length > 0 || child.exitCode !== null);
    if (child.exitCode !== null) throw new Error(`${options.host} ended with ${child.exitCode}`);
    return host;
  }

  /** Waits for something that it says from now on, or has said since a time. */
  async says(text: RegExp, since: number): Promise<Said> {
    const find = () => this.said.find((one) => one.at >= since && text.test(one.text));
    await until(`${this.host} says ${text}`, find);
    return find() as Said;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(name);
  }

  /** Releases what it has and ends. */
  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.write('stop\n');
    await ended;
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }
}

/** The time that all processes of a machine share, milliseconds. */
export const machineMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** What all hosts did under their leases, in true order. */
export function actsOf(journal: string): { at: number; host: string; number: number }[] {
  if (!existsSync(journal)) return [];
  return readFileSync(journal, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [at, host = '', number] = line.split(' ');
      return { at: Number(at), host, number: Number(number) };
    })
    .sort((a, b) => a.at - b.at);
}
