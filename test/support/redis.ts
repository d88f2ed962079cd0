import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';
import { PATIENCE_MS } from './until.ts';

export interface RedisServerOptions {
  /** The password that clients must give. */
  readonly password?: string;
  /** Further arguments, e.g. `['--databases', '1']`. */
  readonly args?: readonly string[];
}

const STARTS = 5;

/** A real redis-server of one test, on a port and in a folder of its own. What it acknowledged survives a restart. */
export class RedisServer {
  readonly port: number;
  readonly #dir: string;
  readonly #options: RedisServerOptions;
  #process: ChildProcess | undefined;
  #isWatched = false;

  private constructor(port: number, dir: string, options: RedisServerOptions) {
    this.port = port;
    this.#dir = dir;
    this.#options = options;
  }

  /** Starts one; it is killed when the test ends. */
  static async start(t: Scope, options: RedisServerOptions = {}): Promise<RedisServer> {
    const dir = tempDir(t);
    for (let i = 1; ; i += 1) {
      const server = new RedisServer(await freePort(), dir, options);
      t.teardown(() => server.kill());
      try {
        await server.up();
        return server;
      } catch (error) {
        if (i === STARTS) throw error; // else somebody took the port in between
      }
    }
  }

  get url(): string {
    const { password } = this.#options;
    return `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${this.port}`;
  }

  /** A plain client, without anything of ours; closed when the test ends. */
  client(t: Scope, db = 1): Redis {
    const { password } = this.#options;
    const client = new Redis({ port: this.port, db, ...(password !== undefined && { password }) });
    client.on('error', () => {});
    t.teardown(() => client.disconnect());
    return client;
  }

  /** Calls back with each command that any client sends (MONITOR), from the moment `isWatched`. */
  watch(t: Scope, listener: (line: string) => void): void {
    const socket = connect(this.port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    createInterface({ input: socket }).on('line', (line) => {
      if (line === '+OK') this.#isWatched = true;
      else listener(line);
    });
  }

  get isWatched(): boolean {
    return this.#isWatched;
  }

  /** Starts it (again) and waits until it answers. */
  async up(): Promise<void> {
    const { password, args = [] } = this.#options;
    const options = {
      port: this.port,
      bind: '127.0.0.1',
      dir: this.#dir,
      save: '',
      appendonly: 'yes',
      appendfsync: 'always',
      loglevel: 'warning',
      ...(password !== undefined && { requirepass: password }),
    };
    const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const child = spawn('redis-server', [...flags, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    const said: string[] = [];
    child.stdout.on('data', (chunk) => said.push(String(chunk)));
    child.stderr.on('data', (chunk) => said.push(String(chunk)));
    child.on('error', (error) => said.push(error.message));
    this.#process = child;
    const probe = new Redis({
      port: this.port,
      ...(password !== undefined && { password }),
      retryStrategy: () => 20,
    });
    probe.on('error', () => {});
    try {
      const ended = once(child, 'exit').then(() => {
        throw new Error(`redis-server did not start (apt-get install redis-server): ${said.join('')}`);
      });
      await Promise.race([new Promise<void>((resolve) => probe.once('ready', resolve)), ended]);
      ended.catch(() => {});
    } finally {
      probe.disconnect();
    }
  }

  /** Ends it, as an operator does. */
  async down(): Promise<void> {
    await this.#signal('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.#signal('SIGKILL');
  }

  /** It keeps its connections and answers nothing until `resume`. */
  pause(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    if (signal === 'SIGTERM') child.kill('SIGCONT');
    child.kill(signal);
    await ended;
  }
}

/** Waits, in real time, until it holds; generous, because a busy machine is slow. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = PATIENCE_MS,
): Promise<void> {
  for (const end = Date.now() + limitMs; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`after ${limitMs} ms still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
