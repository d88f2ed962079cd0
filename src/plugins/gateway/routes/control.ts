import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/exchanges.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { LiveRoutes } from './live-routes.ts';
import { reloadRoutes } from './reload.ts';
import { rollbackAsked } from './topics.ts';
import { type DocumentSource, type HealthSource, viewOf } from './view.ts';

/** What commands ask. */
export const ROUTES_PATH = '/gateway/routes';
export const RELOAD_PATH = '/gateway/reload';
export const ROLLBACK_PATH = '/gateway/rollback';

const REPLY_MS = 15_000;
const nothing = z.strictObject({});
const rollback = z.strictObject({ route: z.string().min(1).max(64), to: z.int().min(1).optional() });

/** What the commands of routes stand on; there once the plugin has started. */
export interface RouteControlParts {
  readonly live: () => LiveRoutes;
  readonly health: () => HealthSource | undefined;
  readonly documents: () => DocumentSource | undefined;
  /** The options of the plugin as it was started. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Serves what `gateway routes`, `reload` and `rollback` ask of the running instance. */
export function serveRoutes(
  surface: HttpSurface,
  { services }: Pick<PluginContext, 'services'>,
  { live, health, documents, options }: RouteControlParts,
): void {
  serveOperation(surface, ROUTES_PATH, nothing, () =>
    viewOf(live(), { health: health(), documents: documents(), now: services.clock.now() }),
  );

  serveOperation(surface, RELOAD_PATH, nothing, async (_asked, { correlation }) => {
    const answer = services.exchanges.open(correlation, REPLY_MS);
    answer.catch(() => {}); // a reload that throws leaves nobody waiting
    const restart = await reloadRoutes(services, live(), 'asked', options, correlation);
    return { ...accepted(await answer, 'HF_GATEWAY_RELOAD'), restart };
  });

  serveOperation(surface, ROLLBACK_PATH, rollback, async ({ route, to }, { correlation }) => {
    const answer = services.exchanges.open(correlation, REPLY_MS);
    const at = services.clock.now();
    services.bus.publish(rollbackAsked, { at, route, ...(to !== undefined && { to }) }, { correlation });
    return accepted(await answer, 'HF_GATEWAY_ROLLBACK');
  });
}

/** @throws HF_GATEWAY_RELOAD, HF_GATEWAY_ROLLBACK what the table's machine refused, and why */
function accepted({ status, body }: Reply, refusal: 'HF_GATEWAY_RELOAD' | 'HF_GATEWAY_ROLLBACK'): object {
  if (status === 200) return body as object;
  throw new HoldfastError(refusal, {
    reason: String((body as { reason?: unknown }).reason).replace(/\.$/, ''),
  });
}
