import type { CheckDefinition } from '../../../core/host/plugin/diagnosis.ts';
import type { ClusterOptions } from '../options.ts';

const NAMES = ['reachable', 'permissions', 'replicas', 'streams', 'clock', 'race', 'instance'] as const;

/** The checks of `holdfast doctor cluster`; what they need is loaded with the first. */
export function clusterChecks(options: ClusterOptions): readonly CheckDefinition[] {
  return NAMES.map((name) => ({
    name: `cluster.${name}`,
    run: async (context) => (await import('./checks.ts')).lookAt(name, options, context),
  }));
}
