import { runHere } from './cli/run.ts';

/**
 * The plugins of the delivered `plugins.config.ts` that keep actors, on embedded defaults. Their machines read any log of
 * this release, also where no configuration is; their commands reach an instance whose configuration has been broken since.
 */
export async function builtinPlugins() {
  const [{ resolveConfig }, ...plugins] = await Promise.all([
    import('./core/host/config/resolve.ts'),
    import('./plugins/router/index.ts').then(({ router }) => router()),
    import('./plugins/reconciler/index.ts').then(({ reconciler }) => reconciler()),
    import('./plugins/gateway/index.ts').then(({ gateway }) => gateway()),
    import('./plugins/columnar/index.ts').then(({ columnar }) => columnar()),
    import('./plugins/memory-store/index.ts').then(({ memoryStore }) => memoryStore()),
    import('./plugins/memory/index.ts').then(({ memory }) => memory()),
    import('./plugins/restore/index.ts').then(({ restore }) => restore()),
    import('./plugins/secrets/index.ts').then(({ secretsFolder }) => secretsFolder()),
    import('./plugins/collector/index.ts').then(({ collector }) => collector()),
    import('./plugins/otlp/index.ts').then(({ otlp }) => otlp()),
    import('./plugins/uptime/index.ts').then(({ uptime }) => uptime()),
    import('./plugins/uptime-monitor/index.ts').then(({ uptimeMonitor }) => uptimeMonitor()),
    import('./plugins/watchdog/index.ts').then(({ watchdog }) => watchdog()),
    import('./plugins/jobs/index.ts').then(({ jobs }) => jobs()),
    import('./plugins/alerts/index.ts').then(({ alerts }) => alerts()),
  ]);
  return resolveConfig({ plugins }, { env: {} }).plugins;
}

/**
 * The command line; `bin/holdfast.js` calls it on a Node that is new enough.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration
 */
export function main(argv: string[]): Promise<number> {
  return runHere(argv, builtinPlugins);
}
