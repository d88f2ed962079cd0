import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { LoadOrigin } from '../../../machines/gateway/routes.ts';
import type { LiveRoutes } from './live-routes.ts';

/** What the options of the plugin are compared by. */
type Options = Readonly<Record<string, unknown>>;

/** Reads the configuration again. @returns the names of other options that changed, which need a restart */
export async function reloadRoutes(
  { configFile, logger }: Services,
  routes: LiveRoutes,
  origin: LoadOrigin,
  started: Options,
  correlation?: string,
): Promise<readonly string[]> {
  if (!configFile) throw new HoldfastError('HF_GATEWAY_RELOAD', { reason: 'it runs without a file' });
  let options: Options | undefined;
  try {
    options = await configFile.optionsOf('gateway');
    if (!options) throw new HoldfastError('HF_GATEWAY_RELOAD', { reason: 'the file lists no gateway' });
  } catch (error) {
    routes.refuse(isCoded(error) ? error.what : String(error), origin, correlation);
    return [];
  }
  const later = Object.keys({ ...started, ...options }).filter(
    (name) => name !== 'routes' && JSON.stringify(started[name]) !== JSON.stringify(options?.[name]),
  );
  if (later.length > 0) logger.warn({ options: later }, 'gateway.restart_needed');
  await routes.load(options.routes as readonly unknown[], origin, correlation);
  return later;
}

/** Takes up every change of the configuration's file. @returns ends it */
export function followFile(context: PluginContext, routes: LiveRoutes, started: Options): () => void {
  const { services } = context;
  const { configFile, logger } = services;
  if (!configFile) return () => {};
  return configFile.watch(
    () => {
      reloadRoutes(services, routes, 'changed', started).catch((error) =>
        logger.error({ err: error }, 'gateway.reload_failed'),
      );
    },
    (error) => logger.warn({ err: error }, 'gateway.config_not_watched'),
  );
}
