import type { ExecutionContext } from 'ava';
import { request } from 'undici';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import type { Divergence } from '../../../src/core/kernel/replay/verify.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import example from '../../../src/plugins/router/embedded/example-network-config.json' with { type: 'json' };
import { router } from '../../../src/plugins/router/index.ts';
import type { RedisServer } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';

/** A config that a test may change. */
export type Config = any;

export interface Answer {
  readonly status: number;
  readonly body: any;
}

export const exampleConfig = (): Config => structuredClone(example);

/** A config that passes every check and that no kernel takes: two bridges, each a member of the other. */
export function withCircle(config: Config): Config {
  Object.assign(config.interface.bridge, { br8: { intf: ['br9'] }, br9: { intf: ['br8'] } });
  return config;
}

export interface RigOptions {
  readonly dataDir?: string;
  readonly clock?: VirtualClock;
  readonly options?: Parameters<typeof router>[0];
  readonly plugins?: readonly PluginEntry[];
  /** Collects log lines instead of dropping them. */
  readonly lines?: string[];
}

/** One by data folder, so that a restart finds what was stored. */
const servers = new Map<string, Promise<RedisServer>>();

/** Where the config is kept: a file `<name>.redis.slow.test.ts` runs the tests of `<name>.test.ts` with a Redis for each. */
async function storeOptions(t: ExecutionContext<any>, dataDir: string): Promise<RigOptions['options']> {
  if (process.env.HOLDFAST_TEST_STORE !== 'redis') return {};
  const start = async () => (await import('../../support/redis.ts')).RedisServer.start(t);
  const server = servers.get(dataDir) ?? start();
  servers.set(dataDir, server);
  return { redisUrl: (await server).url, storeCheckMs: 3_600_000 };
}

/** A runtime with the embedded router on a free port, spoken to over HTTP. */
export class Rig {
  readonly runtime: Runtime;
  readonly dataDir: string;
  readonly #clock: VirtualClock | undefined;

  private constructor(runtime: Runtime, dataDir: string, clock: VirtualClock | undefined) {
    this.runtime = runtime;
    this.dataDir = dataDir;
    this.#clock = clock;
  }

  static async start(t: ExecutionContext<any>, rig: RigOptions = {}): Promise<Rig> {
    const { clock, options, plugins = [], lines } = rig;
    const dataDir = rig.dataDir ?? tempDir(t);
    const store = await storeOptions(t, dataDir);
    const entries = [
      router({ port: 0, writeBudget: { burst: 100_000, perSecond: 1_000 }, ...store, ...options }),
      ...plugins,
    ];
    const resolved = resolveConfig({ plugins: entries }, { env: {} });
    const logger = createLogger(
      lines
        ? { level: 'trace', destination: { write: (line) => void lines.push(line) } }
        : { level: 'silent' },
    );
    const runtime = createRuntime({ plugins: resolved.plugins, dataDir, logger, ...(clock && { clock }) });
    t.teardown(() => runtime.stop('test over'));
    await runtime.start();
    return new Rig(runtime, dataDir, clock);
  }

  get url(): string {
    return this.runtime.surfaces.router!.url;
  }

  async call(
    method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<Answer> {
    const raw = typeof body === 'string' || Buffer.isBuffer(body);
    const response = await request(`${this.url}${path}`, {
      method,
      ...(body !== undefined && {
        body: raw ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    });
    const text = await response.body.text();
    return { status: response.statusCode, body: text && JSON.parse(text) };
  }

  async active(): Promise<Config> {
    return (await this.call('GET', '/v1/config/active')).body;
  }

  set(config: Config, control: Config = {}): Promise<Answer> {
    return this.call('POST', '/v1/config/set', { ...config, ...control });
  }

  async history(): Promise<any[]> {
    return (await this.call('GET', '/v1/config/history')).body.entries;
  }

  async state(intf: string): Promise<any> {
    return (await this.call('GET', `/v1/interface/${intf}`)).body.state;
  }

  actor(): any {
    return this.runtime.services.actors.snapshot('router.config/default');
  }

  async records(): Promise<LogRecord[]> {
    const reader = new SqliteReader(this.dataDir);
    try {
      return await Array.fromAsync(reader.read());
    } finally {
      reader.close();
    }
  }

  /** Replays the log. @returns the first divergence */
  divergence(): Divergence | undefined {
    const reader = new SqliteReader(this.dataDir);
    const actors = new Map(this.runtime.registrations.actors.map((actor) => [actor.type, actor]));
    try {
      return verifyLog(reader, actors).divergence;
    } finally {
      reader.close();
    }
  }

  /** Waits, in real time, until nothing is under way. */
  async settled(): Promise<void> {
    const { log, actors } = this.runtime.services;
    const open = () => actors.states().some(({ effects }) => Object.keys(effects).length > 0);
    do {
      await log.whenDurable(log.lastSeq());
      await new Promise((resolve) => setTimeout(resolve, 2));
    } while (open() || log.status().queued > 0);
  }

  /** Moves virtual time and lets what it set off come to its end. */
  async pass(ms: number): Promise<void> {
    await this.#clock?.advance(ms);
    await this.settled();
  }
}
