import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { postControl } from '../../src/core/host/operations/control-client.ts';
import { type RuntimeFile, readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import type { Scope } from '../../test/support/scope.ts';

const root = new URL('../../', import.meta.url).pathname;
const source = (path: string) => JSON.stringify(join(root, path));
const START_MS = 60_000;

/** The cluster that a host belongs to. */
export interface ClusterWish {
  readonly name: string;
  readonly servers: string;
  readonly keyFile: string;
  readonly leaseMs?: number;
}

export interface HostWish {
  readonly name: string;
  /** Folder in which it has one of its own. */
  readonly dir: string;
  /** Absent: it is alone. */
  readonly cluster?: ClusterWish | undefined;
  /** Addresses of the servers behind its gateway, by route; without a gateway unless set. */
  readonly upstreams?: Readonly<Record<string, string>>;
  /** File for what the pump does, a singleton; no pump unless set. */
  readonly journal?: string;
  /** A configuration in place of the one that is written of the above. */
  readonly config?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeOptions?: readonly string[];
}

/** A Holdfast of its own process, as `holdfast start` starts it: alone, or as a host of a cluster. */
export class BenchHost {
  readonly name: string;
  readonly dataDir: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #file: RuntimeFile;

  private constructor(wish: HostWish, child: ChildProcess, file: RuntimeFile) {
    this.name = wish.name;
    this.dataDir = dataDirOf(wish);
    this.pid = file.pid;
    this.#child = child;
    this.#file = file;
  }

  /** Starts one and waits until it is ready. It ends with the benchmark. */
  static async start(scope: Scope, wish: HostWish): Promise<BenchHost> {
    const { cluster, name, config = configOf(wish), nodeOptions = [] } = wish;
    const env = {
      NODE_NO_WARNINGS: '1',
      HOLDFAST_GATEWAY_PORT: '0',
      ...(cluster && {
        HOLDFAST_NATS_URL: cluster.servers,
        HOLDFAST_CLUSTER_KEY_FILE: cluster.keyFile,
        HOLDFAST_CLUSTER_NAME: cluster.name,
        HOLDFAST_CLUSTER_HOST: name,
      }),
      ...wish.env,
    };
    const dataDir = dataDirOf(wish);
    const started = [join(root, 'bin/holdfast.js'), 'start', '--data-dir', dataDir, '--config', config];
    const child = spawn(process.execPath, [...nodeOptions, ...started], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-4_000);
    });
    scope.teardown(() => ended(child, 'SIGKILL'));
    for (const end = performance.now() + START_MS; child.exitCode === null; await sleep(5)) {
      const file = readRuntimeFile(dataDir);
      if (file?.pid === child.pid && file) return new BenchHost(wish, child, file);
      if (performance.now() > end) break;
    }
    throw new Error(`${name} is not ready: ${errors}`);
  }

  /** Where clients call a server. */
  mcpUrl(route: string): string {
    return `${this.#file.surfaces.gateway?.url}/${route}/mcp`;
  }

  /** Has all its threads run on one processor from now on. */
  pin(processor: number): void {
    pin(this.pid, [processor]);
  }

  /** Processor time of all its threads so far, milliseconds. */
  cpuMs(): number {
    let sum = 0;
    for (const task of readdirSync(`/proc/${this.pid}/task`)) {
      sum += Number(readFileSync(`/proc/${this.pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
    }
    return sum / 1e6;
  }

  /** Asks it on its control socket, as a command does. @throws when it refuses */
  async control(path: string, body: object): Promise<void> {
    const { status, body: answer } = await postControl(this.dataDir, path, body, AbortSignal.timeout(30_000));
    if (status !== 200) throw new Error(`${this.name} refused ${path}: ${JSON.stringify(answer)}`);
  }

  /** Stops it where it stands, until `thaw`. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    return ended(this.#child, signal);
  }
}

/** Has all threads of a process run on these processors from now on. */
export function pin(pid: number, processors: readonly number[]): void {
  execFileSync('taskset', ['-acp', processors.join(','), String(pid)], { stdio: 'ignore' });
}

const dataDirOf = ({ dir, name }: HostWish) => join(dir, name, 'data');

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = once(child, 'exit');
  child.kill(signal);
  await end;
}

function configOf({ dir, name, cluster, upstreams, journal }: HostWish): string {
  const folder = join(dir, name);
  mkdirSync(folder, { recursive: true });
  const routes = Object.entries(upstreams ?? {}).map(
    ([route, url]) => `credentialFree(${JSON.stringify({ name: route, url })})`,
  );
  const plugins = [
    cluster && `cluster(${JSON.stringify({ leaseMs: cluster.leaseMs ?? 15_000 })})`,
    upstreams && `gateway({ port: 0, probeEveryMs: 0, routes: [${routes.join(', ')}] })`,
    journal !== undefined && `pumpPlugin(${JSON.stringify({ journal, host: name })})`,
  ];
  // A host that is alone does not even import the plugin.
  const imports = [
    `import { defineConfig } from ${source('src/index.ts')};`,
    cluster && `import { cluster } from ${source('src/plugins/cluster/index.ts')};`,
    upstreams && `import { credentialFree, gateway } from ${source('src/plugins/gateway/index.ts')};`,
    journal !== undefined && `import { pumpPlugin } from ${source('test/support/hosts/pump-plugin.ts')};`,
  ];
  const file = join(folder, 'plugins.config.ts');
  const list = plugins.filter(Boolean).join(', ');
  writeFileSync(
    file,
    `${imports.filter(Boolean).join('\n')}\nexport default defineConfig({ plugins: [${list}] });\n`,
  );
  return file;
}
