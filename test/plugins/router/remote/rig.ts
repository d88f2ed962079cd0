import type { ExecutionContext } from 'ava';
import { z } from 'zod';
import { type RouterApi, RouterApiToken } from '../../../../src/core/contracts/router.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin, type Services } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../../src/core/host/runtime/runtime.ts';
import type { Clock } from '../../../../src/core/kernel/clock.ts';
import { routerRemote } from '../../../../src/plugins/router/index.ts';
import { tempDir } from '../../../support/temp.ts';

export interface Remote {
  readonly api: RouterApi;
  readonly services: Services;
  readonly runtime: Runtime;
  /** Log lines, as JSON text. */
  readonly lines: string[];
  health(): any;
}

/** A runtime whose router is elsewhere, and a plugin in it that uses the router's API. */
export async function remote(
  t: ExecutionContext<any>,
  options: Parameters<typeof routerRemote>[0],
  { clock, heard }: { clock?: Clock; heard?: (services: Services) => void } = {},
): Promise<Remote> {
  let services: Services | undefined;
  const user = definePlugin({
    name: 'user',
    options: z.strictObject({}),
    requires: [RouterApiToken],
    start(started) {
      services = started;
      heard?.(services);
    },
    register() {},
  });
  const lines: string[] = [];
  const logger = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const { plugins } = resolveConfig({ plugins: [routerRemote(options), user()] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir: tempDir(t), logger, ...(clock && { clock }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  if (!services) throw new Error('the user plugin has not started');
  const started = services;
  return {
    api: started.get(RouterApiToken),
    services: started,
    runtime,
    lines,
    health: () => started.health().router,
  };
}
