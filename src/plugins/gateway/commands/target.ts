/** How a command reaches the gateway: the running instance, the routes that it names, and the URL that clients use. */

import { HostError } from '../../../core/host/errors/host-error.ts';
import { isSocketBase } from '../../../core/host/http/addresses.ts';
import { askInstance, type InstanceAddress } from '../../../core/host/operations/control-client.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import { type RouteEntry, routeSchema } from '../routes/entry.ts';
import { ROUTES_PATH, type TableView } from '../routes/operations.ts';

/**
 * Sends a request to the gateway that runs on the data folder.
 *
 * @throws HF_CONTROL_UNREACHABLE no instance runs, or it runs no gateway; HF_GATEWAY_*, HF_LOG_WRITE the gateway refuses
 */
export function askGateway<T extends object>(
  command: InstanceAddress,
  path: string,
  body: object = {},
): Promise<T> {
  return askInstance<T>(command, path, body, 'it runs no gateway');
}

/** The options of the plugin that commands about clients need. */
export interface ClientSettings {
  readonly routes: readonly unknown[];
  readonly port: number;
  readonly tls?: object | undefined;
  readonly publicUrl?: string | undefined;
}

/**
 * Selects the routes that a command is about, in the order of the configuration; behind them those that plugins bring,
 * which a running instance knows.
 *
 * @throws HF_CLI_USAGE there is no route of that name
 */
export async function chosenRoutes(
  entries: readonly unknown[],
  wanted: readonly string[] | undefined,
  command: string,
  instance: InstanceAddress,
): Promise<RouteEntry[]> {
  const listed = entries.flatMap((entry) => routeSchema.safeParse(entry).data ?? []);
  const routes = [...listed, ...(await broughtRoutes(instance, new Set(listed.map(({ name }) => name))))];
  if (wanted === undefined) return routes;
  return wanted.map((name) => {
    const route = routes.find((entry) => entry.name === name);
    if (route) return route;
    const names = routes.map((entry) => entry.name).join(', ') || 'none';
    const reason = `There is no route ${name}; there are ${names}. Those of plugins are known while an instance runs.`;
    throw new HostError('HF_CLI_USAGE', { reason, command });
  });
}

/** @param listed names of the routes that the configuration lists */
async function broughtRoutes(instance: InstanceAddress, listed: ReadonlySet<string>): Promise<RouteEntry[]> {
  const table = await askGateway<TableView>(instance, ROUTES_PATH).catch((error) => {
    if (isCoded(error, 'HF_CONTROL_UNREACHABLE')) return undefined;
    throw error;
  });
  const brought = table?.routes.filter(({ name }) => !listed.has(name)) ?? [];
  return brought.flatMap(
    ({ name, disposition, login }) => routeSchema.safeParse({ name, disposition, ...login }).data ?? [],
  );
}

/**
 * The base URL that clients use, without a slash at its end: the given one, the public one, else the address on which the
 * instance on the data folder listens, or would listen.
 *
 * @throws HF_CLI_USAGE it is not a URL, or the port is chosen at each start
 */
export function baseUrl(
  given: string | undefined,
  { publicUrl, port, tls }: ClientSettings,
  dataDir: string,
  command: string,
): string {
  const url = given ?? publicUrl ?? runningAt(dataDir) ?? `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  if (/^https?:\/\/127\.0\.0\.1:0$/.test(url)) {
    const reason = 'The port is chosen at each start, and nothing runs: start Holdfast, or give --url.';
    throw new HostError('HF_CLI_USAGE', { reason, command });
  }
  if (isSocketBase(url)) {
    const reason = 'The gateway listens on a Unix socket: give --url, or publicUrl in its options.';
    throw new HostError('HF_CLI_USAGE', { reason, command });
  }
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '');
  throw new HostError('HF_CLI_USAGE', { reason: '--url is an http or https URL.', command });
}

function runningAt(dataDir: string): string | undefined {
  return lockedBy(dataDir) === undefined ? undefined : readRuntimeFile(dataDir)?.surfaces.gateway?.url;
}
