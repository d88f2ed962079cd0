import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { type Cluster, ClusterToken } from '../../../src/core/contracts/cluster.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { cluster } from '../../../src/plugins/cluster/index.ts';
import { ClusterSystem } from '../../../src/plugins/cluster/system.ts';
import { silent } from '../../support/cluster.ts';
import { startNats } from '../../support/nats.ts';
import { tempDir } from '../../support/temp.ts';

test('[C13] a host that has left the cluster competes no more, and stops as any other', async (t) => {
  const nats = await startNats(t);
  const dataDir = tempDir(t);
  const keyFile = join(tempDir(t), 'cluster-key');
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  let joined: Cluster | undefined;
  const witness = definePlugin({
    name: 'test-witness',
    options: z.strictObject({}),
    requires: [ClusterToken],
    start: (services) => {
      joined = services.get(ClusterToken);
      return services;
    },
    register: () => {},
  });
  const plugins = [cluster({ servers: nats.url(), keyFile, name: 'left', host: 'attic' }), witness()];
  const runtime = createRuntime({ ...resolveConfig({ plugins }, {}), dataDir, logger: silent });
  t.teardown(() => runtime.stop('test'));
  await runtime.start();
  if (!(joined instanceof ClusterSystem)) throw new Error('it is another cluster');
  await joined.leave();
  joined.compete([]);
  t.is(joined.link.problem, 'it is closed');
  t.deepEqual(await runtime.stop('test'), []);
});
