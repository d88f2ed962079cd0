import { Agent, request } from 'undici';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import type { PluginEntry } from '../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../src/core/host/runtime/runtime.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { router } from '../../src/plugins/router/index.ts';
import type { Scope } from '../../test/support/scope.ts';
import { tempDir } from '../../test/support/temp.ts';

/** A config that a benchmark changes. */
export type Config = any;

export interface Rig {
  readonly runtime: Runtime;
  active(): Promise<Config>;
  /** @param body a config, or its JSON. @returns the answer's status and body */
  set(body: Config | Buffer): Promise<{ status: number; body: Config }>;
}

/** A runtime with the embedded router, spoken to over HTTP; stopped with its scope. */
export async function startRig(
  scope: Scope,
  options: Parameters<typeof router>[0] = {},
  plugins: readonly PluginEntry[] = [],
): Promise<Rig> {
  const entries = [
    router({ port: 0, writeBudget: { burst: 1_000_000, perSecond: 10_000 }, ...options }),
    consolePlugin({ port: 0 }),
    ...plugins,
  ];
  const resolved = resolveConfig({ plugins: entries }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins: resolved.plugins, dataDir: tempDir(scope), logger });
  scope.teardown(() => runtime.stop('bench'));
  const dispatcher = new Agent({ connections: 16 });
  scope.teardown(() => dispatcher.close());
  await runtime.start();
  const url = `${runtime.surfaces.router?.url}/v1/config`;
  return {
    runtime,
    active: async () => (await request(`${url}/active`, { dispatcher })).body.json(),
    async set(body) {
      const answer = await request(`${url}/set`, {
        dispatcher,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
      });
      return { status: answer.statusCode, body: await answer.body.json() };
    },
  };
}
