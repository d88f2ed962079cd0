import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type ConnectionOptions, connect } from '@nats-io/transport-node';
import { NatsProxy } from './nats-proxy.ts';
import type { Scope } from './scope.ts';
import { SmallDisk } from './small-disk.ts';
import { tempDir } from './temp.ts';
import { PATIENCE_MS, until } from './until.ts';

export interface NatsWish {
  /** How many servers; three are one cluster of NATS. 1 unless set. */
  readonly servers?: 1 | 3;
  /** Certificate and key of the servers, and the authority of certificates that clients must have. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly clientCaFile?: string };
  /** Room for all streams on a disk, bytes; 4 GB unless set. */
  readonly storeBytes?: number;
  /** Further lines of each server's configuration, e.g. `authorization { … }`. */
  readonly config?: string;
  /** The servers reach each other through proxies, so that a test can cut them off from each other. */
  readonly isSplittable?: boolean;
  /** Each server has a disk of its own of so many megabytes, which a test can fill; unlimited unless set. */
  readonly diskMegabytes?: number;
  /** How the tests' own client gets in. */
  readonly login?: Partial<ConnectionOptions>;
}

interface Server {
  readonly name: string;
  readonly port: number;
  readonly configFile: string;
  readonly logFile: string;
  /** From it to each of the others. */
  readonly routes: readonly NatsProxy[];
  readonly disk?: SmallDisk | undefined;
  process?: ChildProcess | undefined;
}

const STARTS = 5;

/**
 * Starts Debian's nats-server, one or a cluster of three, on loopback, with JetStream in a temporary folder, and waits until
 * JetStream works. All end with the test.
 */
export async function startNats(t: Scope, wish: NatsWish = {}): Promise<NatsServers> {
  for (let i = 1; ; i += 1) {
    const nats = await NatsServers.prepare(t, wish);
    try {
      await nats.begin();
      return nats;
    } catch (error) {
      await nats.end();
      if (i === STARTS) throw error; // else somebody took a port in between
    }
  }
}

/** Real servers of NATS that a test kills, stops and cuts off. Servers are counted from 0. */
export class NatsServers {
  readonly #servers: readonly Server[];
  readonly #wish: NatsWish;
  readonly #scope: Scope;
  #probes = 0;

  private constructor(scope: Scope, wish: NatsWish, servers: readonly Server[]) {
    this.#scope = scope;
    this.#wish = wish;
    this.#servers = servers;
  }

  static async prepare(t: Scope, wish: NatsWish): Promise<NatsServers> {
    const dir = tempDir(t);
    const count = wish.servers ?? 1;
    const ports = await freePorts(count * 2);
    const { diskMegabytes } = wish;
    const routePorts = ports.slice(count);
    const preparing = ports.slice(0, count).map(async (port, index): Promise<Server> => {
      const [name, home] = [`n${index}`, join(dir, `n${index}`)];
      mkdirSync(join(home, 'store'), { recursive: true });
      const [configFile, logFile] = [join(home, 'nats.conf'), join(home, 'log')];
      const route = routePorts[index] ?? 0;
      const others = routePorts.map((other) =>
        wish.isSplittable && other !== route ? NatsProxy.open(other, 'nats-route') : undefined,
      );
      const proxies = await Promise.all(others);
      const routes = proxies.map((proxy, at) => proxy?.url ?? `nats-route://127.0.0.1:${routePorts[at]}`);
      writeFileSync(configFile, configOf({ name, home, port, route, routes, wish }));
      const opened = proxies.filter((proxy) => proxy !== undefined);
      for (const proxy of opened) t.teardown(() => proxy.close());
      const disk = diskMegabytes ? await SmallDisk.mount(t, join(home, 'store'), diskMegabytes) : undefined;
      return { name, port, configFile, logFile, routes: opened, disk };
    });
    const servers = await Promise.all(preparing);
    const nats = new NatsServers(t, wish, servers);
    t.teardown(() => nats.end());
    return nats;
  }

  /** Starts all and waits until JetStream has its leader. */
  async begin(): Promise<void> {
    await Promise.all(this.#servers.map((_, i) => this.#up(i)));
    await until('JetStream answers', () => this.#answers(), 50);
  }

  get count(): number {
    return this.#servers.length;
  }

  /** `nats://…` of one server. */
  url(i = 0): string {
    return `${this.#wish.tls ? 'tls' : 'nats'}://${this.#wish.tls ? 'localhost' : '127.0.0.1'}:${this.#at(i).port}`;
  }

  urls(): string[] {
    return this.#servers.map((_, i) => this.url(i));
  }

  /** Of the process of a server that runs. */
  pid(i = 0): number {
    const pid = this.#at(i).process?.pid;
    if (pid === undefined) throw new Error(`server ${i} does not run`);
    return pid;
  }

  /** What a server has logged so far, over all its starts. */
  logOf(i: number): string {
    return logOf(this.#at(i));
  }

  /** Where a server that runs tells of itself: `http://127.0.0.1:<port>`. */
  monitorOf(i: number): string {
    const [, address] = this.logOf(i).match(/^(?:.|\n)*Starting http monitor on (\S+)/) ?? [];
    if (address === undefined) throw new Error(`server ${i} has not started`);
    return `http://${address}`;
  }

  /** Folder in which a server keeps its streams. */
  storeOf(i: number): string {
    return join(dirname(this.#at(i).configFile), 'store');
  }

  /** kill -9; resolves when it has ended. */
  async kill(i: number): Promise<void> {
    const server = this.#at(i);
    const child = server.process;
    server.process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** It keeps its connections and does nothing until `cont` (SIGSTOP). Returns when all its threads stand still. */
  stop(i: number): void {
    const child = this.#at(i).process;
    if (child?.pid === undefined) return;
    child.kill('SIGSTOP');
    for (let tries = 0; tries < 5_000 && !standsStill(child.pid); tries += 1) Atomics.wait(nobody, 0, 0, 1);
  }

  cont(i: number): void {
    this.#at(i).process?.kill('SIGCONT');
  }

  /** Ends a server, if it runs, and starts it again with what it has stored. */
  async restart(i: number): Promise<void> {
    await this.kill(i);
    await this.#up(i);
    await until('JetStream answers', () => this.#answers(), 50);
  }

  /** A connection to one server that the test cuts, slows and heals; gone when the test ends. */
  async proxyTo(i = 0): Promise<NatsProxy> {
    const proxy = await NatsProxy.open(this.#at(i).port, this.#wish.tls ? 'tls' : 'nats');
    this.#scope.teardown(() => proxy.close());
    return proxy;
  }

  /** Cuts one server off from the others; clients reach all of them. */
  split(i: number): void {
    for (const route of this.#routesOf(i)) route.cut();
  }

  rejoin(i: number): void {
    for (const route of this.#routesOf(i)) route.heal();
  }

  /** Copies what a server that does not run has stored. @returns where to */
  keepStore(i: number): string {
    const copy = tempDir(this.#scope);
    cpSync(join(this.storeDir(i), 'jetstream'), join(copy, 'jetstream'), { recursive: true });
    return copy;
  }

  /** Sets a server that does not run back to such a copy. */
  restoreStore(i: number, copy: string): void {
    const store = join(this.storeDir(i), 'jetstream');
    rmSync(store, { recursive: true });
    cpSync(join(copy, 'jetstream'), store, { recursive: true });
  }

  /** The disk of a server, where each has one of its own. */
  diskOf(i: number): SmallDisk {
    const { disk } = this.#at(i);
    if (!disk) throw new Error('the servers have no disks of their own: wish for diskMegabytes');
    return disk;
  }

  /** Where a server keeps its streams, as this process sees it. */
  storeDir(i = 0): string {
    const { configFile, disk } = this.#at(i);
    return disk?.path ?? join(dirname(configFile), 'store');
  }

  /** The proxies from a server and to it. */
  #routesOf(i: number): NatsProxy[] {
    const from = (server: number, to: number) => this.#at(server).routes[to > server ? to - 1 : to];
    const others = this.#servers.map((_, other) => other).filter((other) => other !== i);
    const routes = others.flatMap((other) => [from(i, other), from(other, i)]);
    return routes.filter((route) => route !== undefined);
  }

  async end(): Promise<void> {
    await Promise.all(this.#servers.map((_, i) => this.kill(i)));
  }

  #at(i: number): Server {
    const server = this.#servers[i];
    if (!server) throw new Error(`there is no server ${i}`);
    return server;
  }

  async #up(i: number): Promise<void> {
    const server = this.#at(i);
    const [program = '', ...args] = [...(server.disk?.inside ?? []), 'nats-server', '-c', server.configFile];
    const child = spawn(program, args, { stdio: 'ignore' });
    server.process = child;
    const failed = new Promise<never>((_, reject) => {
      child.once('error', (error) =>
        reject(new Error(`nats-server (apt-get install nats-server): ${error.message}`)),
      );
      child.once('exit', (code) => reject(new Error(`nats-server ended with ${code}: ${logOf(server)}`)));
    });
    failed.catch(() => {});
    const isReady = until(
      `${server.name} is ready`,
      () => /Server is ready/.test(logOf(server)) || failedStart(child),
    );
    await Promise.race([isReady, failed]);
    isReady.catch(() => {});
  }

  /** Whether a stream can be made and deleted: JetStream has a leader, and enough servers for a stream of all. */
  async #answers(): Promise<boolean> {
    const { tls, login } = this.#wish;
    try {
      const connection = await connect({
        servers: this.#servers.map(({ port }) => `localhost:${port}`),
        timeout: PATIENCE_MS,
        ...(tls && { tls: { caFile: tls.certFile } }),
        ...login,
      });
      try {
        const ask = async (subject: string, body = '') =>
          (await connection.request(subject, body, { timeout: 2_000 })).json<{ error?: unknown }>().error;
        this.#probes += 1; // servers that start at the same time are asked at the same time
        const name = `PROBE_${this.#probes}`;
        const stream = { name, subjects: [name], num_replicas: this.count, storage: 'memory' };
        const problem = await ask(`$JS.API.STREAM.CREATE.${name}`, JSON.stringify(stream));
        if (problem !== undefined) return false;
        return (await ask(`$JS.API.STREAM.DELETE.${name}`)) === undefined;
      } finally {
        await connection.close();
      }
    } catch {
      return false;
    }
  }
}

const nobody = new Int32Array(new SharedArrayBuffer(4));

/** The signal reaches the threads of a process one after the other. */
function standsStill(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((task) => {
    try {
      return /\) T /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8'));
    } catch {
      return true; // that thread has just ended
    }
  });
}

function failedStart(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

interface ConfigParts {
  readonly name: string;
  readonly home: string;
  readonly port: number;
  readonly route: number;
  readonly routes: readonly string[];
  readonly wish: NatsWish;
}

function configOf({ name, home, port, route, routes, wish }: ConfigParts): string {
  const { tls, config = '' } = wish;
  const lines = [
    `server_name: ${name}`,
    `listen: "127.0.0.1:${port}"`,
    'http: "127.0.0.1:-1"',
    `log_file: "${join(home, 'log')}"`,
    `jetstream { store_dir: "${join(home, 'store')}", max_file_store: ${wish.storeBytes ?? '4GB'}, max_memory_store: 256MB }`,
    config,
  ];
  if (routes.length > 1) {
    // Where routes are cut by proxies, the servers must not tell each other of the way around them.
    const advertise = wish.isSplittable ? ', advertise: "127.0.0.1:1"' : '';
    lines.push(
      `cluster { name: tests, listen: "127.0.0.1:${route}", routes: ${JSON.stringify(routes)}${advertise} }`,
    );
  }
  if (tls) {
    const ca = tls.clientCaFile === undefined ? '' : `, ca_file: "${tls.clientCaFile}", verify: true`;
    lines.push(`tls { cert_file: "${tls.certFile}", key_file: "${tls.keyFile}"${ca} }`);
  }
  return `${lines.join('\n')}\n`;
}

function logOf({ logFile }: Server): string {
  try {
    return readFileSync(logFile, 'utf8');
  } catch {
    return '';
  }
}

/** Ports that nobody uses now. Held all at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = held.map((server) => (server.address() as { port: number }).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
