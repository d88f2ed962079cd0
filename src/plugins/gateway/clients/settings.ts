import { HoldfastError } from '../../../core/errors/index.ts';
import { type RouteEntry, routeSchema } from '../routes/entry.ts';

/** What commands that speak of clients know of the configuration. */
export interface ClientSettings {
  readonly routes: readonly unknown[];
  readonly port: number;
  readonly publicUrl?: string | undefined;
}

/**
 * The routes that a command is to speak of, in the order of the configuration.
 *
 * @throws HF_CLI_USAGE a name is none of them
 */
export function chosenRoutes(
  entries: readonly unknown[],
  wanted: readonly string[] | undefined,
  command: string,
): RouteEntry[] {
  const routes = entries.flatMap((entry) => routeSchema.safeParse(entry).data ?? []);
  if (wanted === undefined) return routes;
  return wanted.map((name) => {
    const route = routes.find((entry) => entry.name === name);
    if (route) return route;
    const reason = `There is no route ${name}; there are ${routes.map((entry) => entry.name).join(', ')}.`;
    throw new HoldfastError('HF_CLI_USAGE', { reason, command });
  });
}

/** The base that clients use, without a slash at its end. @throws HF_CLI_USAGE it is no URL, or nobody knows it */
export function baseUrl(
  given: string | undefined,
  { publicUrl, port }: ClientSettings,
  command: string,
): string {
  if ((given ?? publicUrl) === undefined && port === 0) {
    const reason = 'The port is chosen at each start: give --url, which `holdfast status` shows.';
    throw new HoldfastError('HF_CLI_USAGE', { reason, command });
  }
  const url = given ?? publicUrl ?? `http://127.0.0.1:${port}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '');
  throw new HoldfastError('HF_CLI_USAGE', { reason: '--url is an http or https URL.', command });
}
