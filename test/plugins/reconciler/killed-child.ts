/** A runtime whose router takes a write and never answers, in a process that a test kills. */
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { FieldRouter, fieldRouterPlugin } from './field-router.ts';
import { quick } from './rig.ts';

const [dataDir = '.'] = process.argv.slice(2);
const router = new FieldRouter();
await router.appSaves((config) => {
  delete config.interface.vlan['eth1.10'].ipv6;
});
router.set = () => {
  process.stdout.write('posted\n');
  return new Promise(() => {});
};
const { plugins } = resolveConfig({ plugins: [fieldRouterPlugin(router), reconciler(quick)] }, { env: {} });
const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'warn' }) });
await runtime.start();
setInterval(() => {}, 60_000);
