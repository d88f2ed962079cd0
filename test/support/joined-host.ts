import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { definePlugin, type Services } from '../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import type { ActorDefinition } from '../../src/core/kernel/actors/definition.ts';
import type { Clock } from '../../src/core/kernel/clock.ts';
import { hostActor, singletonActor } from '../../src/plugins/cluster/actors.ts';
import { clusterOptions } from '../../src/plugins/cluster/options.ts';
import { ClusterSystem } from '../../src/plugins/cluster/system.ts';
import { silent } from './cluster.ts';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';

/** The key of a cluster, in a file. */
export function keyIn(t: Scope): string {
  const file = join(tempDir(t), 'cluster-key');
  writeFileSync(file, randomBytes(32), { mode: 0o600 });
  return file;
}

/** A host whose own program speaks with the cluster: it has no plugins. @param wish `actors` that it knows beside those of the cluster */
export async function joinCluster(
  t: Scope,
  servers: string,
  keyFile: string,
  host: string,
  { actors = [], clock }: { readonly actors?: readonly ActorDefinition[]; readonly clock?: Clock } = {},
) {
  let services: Services | undefined;
  const plugin = definePlugin({
    name: 'test-host',
    options: z.strictObject({}),
    start: (given) => {
      services = given;
      return given;
    },
    register(context) {
      context.actor(singletonActor);
      context.actor(hostActor);
      for (const actor of actors) context.actor(actor);
    },
  });
  const dataDir = tempDir(t);
  const runtime = createRuntime({
    ...resolveConfig({ plugins: [plugin()] }, {}),
    ...{ dataDir, logger: silent, ...(clock && { clock }) },
  });
  await runtime.start();
  if (!services) throw new Error('the plugin has not started');
  const options = clusterOptions.parse({ servers, keyFile, name: 'joined', host, leaseMs: 2_000 });
  const system = await ClusterSystem.join(services, options);
  t.teardown(async () => {
    await system.leave();
    await runtime.stop('test');
  });
  return { system, services };
}
