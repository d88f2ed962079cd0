import { z } from 'zod';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import type { RouteFacts } from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import type { RouteDefinition } from './entries.ts';
import { type RouteEntry, routeSchema } from './entry.ts';
import type { RouteKind } from './kind.ts';

const PURPOSE = 'gateway.route';
/** Characters of a setting's fingerprint: enough to tell that the setting changed. */
const SETTING_LENGTH = 12;

/** What of definitions is code, as the newest entries bring it: a definition of before finds it here by name. */
export interface RouteCode {
  /** Custom kinds by their names. */
  readonly kinds: ReadonlyMap<string, RouteKind>;
  /** The newest definitions with a server, by the names of their routes. */
  readonly servers: ReadonlyMap<string, RouteDefinition>;
}

/** A definition in JSON. Kinds and servers are code: of a kind its name is kept, of a server its plugin and that plugin's options. */
const plainDefinition = z.object({
  entry: z.record(z.string(), z.unknown()),
  url: z.string().optional(),
  secret: z.string().optional(),
  plugin: z.object({ owner: z.string(), options: z.string() }).optional(),
});

/**
 * Keeps whole definitions in the log, so that a rollback finds them after a restart too (G24). Records name a definition
 * by its fingerprint. A URL may hold a secret in its query, so definitions are encrypted.
 */
export class SealedDefinitions {
  readonly #log: Pick<EventLog, 'blob'>;
  readonly #vault: Vault;

  constructor(log: Pick<EventLog, 'blob'>, vault: Vault) {
    this.#log = log;
    this.#vault = vault;
  }

  /** @returns what a record may say of a definition */
  facts(definition: RouteDefinition): RouteFacts {
    const { entry, secret } = definition;
    const plain = this.#plainOf(definition);
    const settings = { ...plain.entry, ...plain, entry: undefined, name: undefined };
    return {
      name: entry.name,
      fingerprint: this.#vault.fingerprint(plain),
      disposition: entry.disposition === 'custom' ? entry.kind.name : entry.disposition,
      ...upstreamOf(definition),
      ...(secret !== undefined && { secret }),
      settings: Object.fromEntries(
        Object.entries(settings).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, this.#vault.fingerprint(value).slice(3, 3 + SETTING_LENGTH)]],
        ),
      ),
    };
  }

  /** @returns the blob to store in the record that names the fingerprint */
  seal(definition: RouteDefinition): Uint8Array {
    return this.#vault.seal(JSON.stringify(this.#plainOf(definition)), PURPOSE);
  }

  /**
   * @param code of which a definition names a part
   * @throws HF_GATEWAY_ROUTE the log has no such blob any more, or the kind or the server is unknown; HF_SECRET_SEALED
   */
  open(name: string, fingerprint: string, { kinds, servers }: RouteCode): RouteDefinition {
    const sealed = this.#log.blob(fingerprint);
    if (!sealed) throw unusable(name, 'its definition is not in the log any more');
    const plain = plainDefinition.parse(JSON.parse(this.#vault.open(sealed, PURPOSE)));
    const { entry, url, secret } = plain;
    const kind = typeof entry.kind === 'string' ? kinds.get(entry.kind) : undefined;
    if (entry.disposition === 'custom' && !kind) {
      throw unusable(name, `no entry of the file brings its kind ${entry.kind}`);
    }
    const served = entry.server === true ? servers.get(name) : undefined;
    const isSame = served && this.#plainOf(served).plugin?.options === plain.plugin?.options;
    if (entry.server === true && !isSame) {
      const of = plain.plugin ? `of the plugin ${plain.plugin.owner}` : 'of the file';
      throw unusable(name, `the server ${of} that it had is not there any more`);
    }
    const parts = { ...(kind && { kind }), ...(served && { server: served.entry.server }) };
    const parsed = routeSchema.safeParse({ ...entry, ...parts });
    if (!parsed.data) throw unusable(name, 'its definition was recorded by another version');
    return { entry: parsed.data, url, secret, ...(served?.plugin && { plugin: served.plugin }) };
  }

  #plainOf({ entry, url, secret, plugin }: RouteDefinition): z.output<typeof plainDefinition> {
    const { url: _, server, ...settings }: RouteEntry = entry;
    const plain = {
      ...settings,
      ...('kind' in settings && { kind: settings.kind.name }),
      ...(server && { server: true }),
    };
    const from = plugin && { owner: plugin.owner, options: this.#vault.fingerprint(plugin.options) };
    return plainDefinition.parse(JSON.parse(JSON.stringify({ entry: plain, url, secret, plugin: from })));
  }
}

/** Where a route leads, without what may be secret: a URL's query, a program's arguments. */
export function upstreamOf({ entry, url, plugin }: RouteDefinition): Pick<RouteFacts, 'upstream'> {
  const by = plugin ? ` (plugin ${plugin.owner})` : '';
  if (url !== undefined) return { upstream: new URL(url).origin + new URL(url).pathname + by };
  if (entry.server) return { upstream: `in this process${by}` };
  if (entry.openapi) return { upstream: `the API at ${entry.openapi.baseUrl}${by}` };
  return entry.command ? { upstream: `the program ${entry.command.run}${by}` } : {};
}

function unusable(name: string, reason: string): HoldfastError {
  return new GatewayError('HF_GATEWAY_ROUTE', { variable: name, reason });
}
