/** The gateway with everything on, in its own process: key, scope, limit, two records a call, metrics. */

import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../src/index.ts';
import { credentialFree, gateway } from '../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../src/plugins/gateway/keys/virtual-keys.ts';
import { telemetry } from '../../src/plugins/telemetry/index.ts';
import { tellUsage } from './usage.ts';

const [, , upstream = '', dataDir = '', key = ''] = process.argv;
const entries = [
  gateway({
    port: 0,
    probeEveryMs: 0,
    routes: [credentialFree({ name: 'bench', url: upstream })],
  }),
  telemetry({ endpoint: new URL(upstream).origin }),
];
const runtime = createRuntime({
  plugins: entries.map(({ definition, options }) => ({
    definition,
    options: definition.options.parse(options),
  })),
  dataDir,
  logger: createLogger({ level: 'warn' }),
});
await runtime.start();
const presented = keyId(key);
const terms = { alias: 'bench', servers: ['bench'], rpmLimit: 1_000_000_000, maxBudget: 1_000 };
await runtime.services.actors
  .send(keyActor, presented, { type: 'KEY_CREATED', at: Date.now(), presented, terms })
  .durable();
process.send?.({ url: `${runtime.surfaces.gateway?.url}/bench/mcp` });
tellUsage();
