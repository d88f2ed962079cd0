import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The files that take longest, most of it waiting for programs and for time that passes. */
const LONGEST = [
  'plugins/alerts/repost.slow',
  'plugins/console/areas.slow',
  'plugins/cluster/messages/messages.slow',
  'core/host/retention/automatic.slow',
  'plugins/router/remote/bundle.slow',
  'plugins/reconciler/rollout.slow',
  'plugins/router/commands/terminal.slow',
  'plugins/reconciler/unit.slow',
  'plugins/cluster/host-faults.slow',
  'plugins/cluster/nats/faults.slow',
  'plugins/incidents/large.slow',
  'plugins/console/large.slow',
  'core/host/runtime/idle-rate.slow',
  'plugins/router/crash.slow',
  'plugins/router/remote/contract.slow',
  'plugins/alerts/rules.slow',
  'plugins/gateway/conformance.slow',
  'kill.slow',
  'package.slow',
  'scripts/mutants',
  'plugins/router/redis.slow',
  'plugins/router/remote/reconcile.slow',
  'plugins/router/remote/doctor.slow',
  'plugins/router/redis-kill.slow',
  'plugins/router/remote/config-watch.slow',
  'plugins/columnar/plugin.slow',
  'plugins/alerts/kill.slow',
  'cli/closed-surfaces.slow',
  'plugins/reconciler/outlived.slow',
  'plugins/reconciler/refusals.slow',
  'core/host/integrity/each-file.slow',
].map((name) => fileURLToPath(new URL(`test/${name}.test.ts`, import.meta.url)));
const gone = LONGEST.filter((file) => !existsSync(file));
if (gone.length > 0) throw new Error(`ava.config.js names test files that do not exist: ${gone.join(', ')}`);

/** Where in the run a file starts: the longest first, then the slow ones, so that none of them is left alone at the end. */
function rank(file) {
  const place = LONGEST.indexOf(file);
  if (place >= 0) return place;
  return LONGEST.length + (file.endsWith('.slow.test.ts') ? 0 : 1);
}

export default {
  extensions: ['ts'], // type stripping is Node's own
  files: [
    'test/**/*.test.ts',
    // `npm run verify` stays under a minute; `npm test` runs everything
    ...(process.env.HOLDFAST_FAST_TESTS ? ['!test/**/*.slow.test.ts'] : []),
  ],
  require: ['./scripts/test-folders.mjs'],
  sortTestFiles: (a, b) => rank(a) - rank(b),
  concurrency: 4, // for two cores: many a test waits for a disk, a timer or a program
  nodeArguments: [
    '--import=./scripts/compile-cache.mjs',
    // A worker lives for seconds: collecting what loading leaves behind took a tenth of its time.
    '--min-semi-space-size=16',
    '--max-semi-space-size=32',
  ],
  // Without any finished test for this long, AVA ends the run: a machine that others use too is slow, not stuck.
  // A test that needs longer says so: t.timeout(ms).
  timeout: '3m',
  // Processes, not threads: tests send signals, change directories and environments, and load native code.
  workerThreads: false,
};
