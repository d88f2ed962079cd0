import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RuntimeFile, readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { root, type Spawned, spawnHoldfast } from '../cli.ts';
import type { Scope } from '../scope.ts';
import { tempDir } from '../temp.ts';
import { read } from '../until.ts';
import type { Stroke } from './pump-plugin.ts';

const source = (path: string) => JSON.stringify(join(root, path));

export interface HostsWish {
  /** Addresses of NATS by host, where they differ: e.g. each through a proxy of its own. */
  readonly servers: (host: string) => string;
  readonly leaseMs?: number;
  /** How long a stroke of the pump takes, milliseconds. */
  readonly strokeMs?: number;
  /** Further plugins of each host's configuration, with their imports. */
  readonly plugins?: { readonly imports: readonly string[]; readonly list: readonly string[] };
  readonly env?: Readonly<Record<string, string>>;
  /** What the process of a host has besides. */
  readonly envOf?: (host: string) => Readonly<Record<string, string>>;
  /** By how much the wall clock of a host is ahead, milliseconds. */
  readonly clockAheadMs?: (host: string) => number;
}

/** Has a process and its threads see another time of day. Preloaded, so that nothing has read the clock before. */
const wallClock = (aheadMs: number) =>
  `data:text/javascript,const now = Date.now; Date.now = () => now() + ${aheadMs};`;

/** Of what each host wrote, in the error of a test. */
const TOLD_BYTES = 8_000;

/** Hosts of one cluster as processes of their own, as people start them, with a pump that runs on one of them. */
export class Hosts {
  readonly journalFile: string;
  readonly dir: string;
  readonly #t: Scope;
  readonly #wish: HostsWish;
  readonly keyFile: string;
  readonly #running = new Map<string, Spawned>();
  readonly #gateways = new Map<string, string>();

  constructor(t: Scope, wish: HostsWish) {
    this.#t = t;
    this.#wish = wish;
    this.dir = tempDir(t);
    this.journalFile = join(this.dir, 'journal');
    writeFileSync(this.journalFile, '');
    this.keyFile = join(this.dir, 'cluster-key');
    writeFileSync(this.keyFile, randomBytes(64), { mode: 0o600 });
  }

  /** Environment of commands about the cluster. */
  env(host: string): Readonly<Record<string, string>> {
    return {
      HOME: this.dir,
      NODE_NO_WARNINGS: '1',
      HOLDFAST_NATS_URL: this.#wish.servers(host),
      HOLDFAST_CLUSTER_KEY_FILE: this.keyFile,
      HOLDFAST_CLUSTER_NAME: 'tests',
      HOLDFAST_CLUSTER_HOST: host,
      HOLDFAST_CONSOLE_PORT: '0',
      HOLDFAST_GATEWAY_PORT: '0',
      ...this.#wish.env,
    };
  }

  dataDir(host: string): string {
    return join(this.dir, host, 'data');
  }

  config(host: string): string {
    const folder = join(this.dir, host);
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'plugins.config.ts');
    const { leaseMs = 1_500, strokeMs, plugins = { imports: [], list: [] } } = this.#wish;
    const options = JSON.stringify({ journal: this.journalFile, host, strokeMs });
    writeFileSync(
      file,
      `import { defineConfig } from ${source('src/index.ts')};
       import { cluster } from ${source('src/plugins/cluster/index.ts')};
       import { consolePlugin } from ${source('src/plugins/console/index.ts')};
       import { credentialFree, gateway } from ${source('src/plugins/gateway/index.ts')};
       import { bucketPlugin, pumpPlugin } from ${source('test/support/hosts/pump-plugin.ts')};
       ${plugins.imports.join('\n')}
       export default defineConfig({ plugins: [
         cluster({ leaseMs: ${leaseMs}, maxStreamBytes: ${64 * 1024 * 1024} }), pumpPlugin(${options}), bucketPlugin({ host: ${JSON.stringify(host)} }),
         consolePlugin(), ${plugins.list.join(', ')}
       ] });`,
    );
    return file;
  }

  /** Starts a host and waits until it is ready. */
  async start(host: string, args: readonly string[] = []): Promise<RuntimeFile> {
    const config = this.config(host);
    const spawned = spawnHoldfast(
      this.#t,
      ['start', '--data-dir', this.dataDir(host), '--config', config, ...args],
      {
        cwd: join(this.dir, host),
        env: { ...this.env(host), ...this.#wish.envOf?.(host) },
        nodeOptions: this.#nodeOptions(host),
      },
    );
    this.#running.set(host, spawned);
    await spawned.see(/Holdfast is ready/);
    const file = readRuntimeFile(this.dataDir(host));
    if (!file) throw new Error(`${host} is ready and has written no runtime.json`);
    this.#gateways.set(host, file.surfaces.gateway?.url ?? '');
    return file;
  }

  #nodeOptions(host: string): string[] {
    const aheadMs = this.#wish.clockAheadMs?.(host) ?? 0;
    return aheadMs === 0 ? [] : ['--import', wallClock(aheadMs)];
  }

  /** Address of its gateway, as it was when the host was last ready. */
  gateway(host: string): string {
    return this.#gateways.get(host) ?? '';
  }

  /** Whether its process was started and has not ended. */
  isUp(host: string): boolean {
    return this.#running.has(host);
  }

  of(host: string): Spawned {
    const spawned = this.#running.get(host);
    if (!spawned) throw new Error(`${host} was not started`);
    return spawned;
  }

  /** Runs a command as an operator of a host does. */
  command(host: string, ...args: readonly string[]): Spawned['ended'] {
    const options = ['--data-dir', this.dataDir(host), '--config', this.config(host)];
    const place = { cwd: join(this.dir, host), env: this.env(host) };
    return spawnHoldfast(this.#t, [...args, ...options], place).ended;
  }

  /** What the hosts wrote last, for the error of a test. */
  told(): string {
    const last = [...this.#running].map(([host, { err }]) => `${host}: ${err().slice(-TOLD_BYTES)}`);
    return last.join('\n');
  }

  async end(host: string, signal: NodeJS.Signals): Promise<void> {
    const spawned = this.of(host);
    spawned.child.kill(signal);
    await spawned.ended;
    this.#running.delete(host);
  }

  /** What the pump did, in the order in which it was done. */
  journal(): Stroke[] {
    if (!existsSync(this.journalFile)) return [];
    const lines = readFileSync(this.journalFile, 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Stroke);
  }

  /** Waits for a stroke that begins behind the first `after` lines of the journal, by one of some hosts. */
  async stroke(hosts: readonly string[], after = this.journal().length): Promise<Stroke> {
    const behind = () =>
      this.journal()
        .slice(after)
        .find(({ host }) => hosts.includes(host));
    try {
      const found = await read(`a stroke of ${hosts.join(' or ')}`, behind, Boolean, 25);
      if (found) return found;
    } catch (error) {
      throw new Error(`${error}\n${this.told()}`, { cause: error });
    }
    throw new Error('there is none');
  }
}
