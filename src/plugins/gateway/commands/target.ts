/** How a command reaches the gateway: the running instance, the routes that it names, and the URL that clients use. */

import { HostError } from '../../../core/host/errors/host-error.ts';
import { isSocketBase } from '../../../core/host/http/addresses.ts';
import { askInstance, type InstanceAddress } from '../../../core/host/operations/control-client.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import { type RouteEntry, routeSchema } from '../routes/entry.ts';

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
 * Selects the routes that a command is about, in the order of the configuration.
 *
 * @throws HF_CLI_USAGE there is no route of that name
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
    throw new HostError('HF_CLI_USAGE', { reason, command });
  });
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
