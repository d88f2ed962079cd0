import type { RouteKind } from '../../../core/contracts/mcp-route-kind.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import type { RouteFacts } from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import type { RouteDefinition } from './entry.ts';
import { type RouteEntry, routeSchema } from './entry.ts';

const PURPOSE = 'gateway.route_health';
/** Of a setting's fingerprint: enough to tell that it changed. */
const PART_LENGTH = 12;

/** RouteKinds of routes that the file's entries are made of, by name. */
export type RouteKinds = ReadonlyMap<string, RouteKind>;

/**
 * Whole definitions in the log's keeping: records name their fingerprints and what may be shown, and a rollback opens
 * them, after a restart as well (G24). A URL may hold a secret in its query, so they lie there encrypted.
 */
export class SealedDefinitions {
  readonly #log: Pick<EventLog, 'blob'>;
  readonly #vault: Vault;

  constructor(log: Pick<EventLog, 'blob'>, vault: Vault) {
    this.#log = log;
    this.#vault = vault;
  }

  facts(definition: RouteDefinition): RouteFacts {
    const { entry, url, secret } = definition;
    const plain = plainOf(definition);
    const address = url === undefined ? undefined : new URL(url);
    const parts = { ...plain.entry, ...plain, entry: undefined, name: undefined };
    return {
      name: entry.name,
      fingerprint: this.#vault.fingerprint(plain),
      disposition: entry.disposition === 'custom' ? entry.kind.name : entry.disposition,
      ...(address && { upstream: address.origin + address.pathname }),
      ...(secret !== undefined && { secret }),
      parts: Object.fromEntries(
        Object.entries(parts).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, this.#part(value)]],
        ),
      ),
    };
  }

  /** @returns the body to travel beside the record that names its fingerprint */
  seal(definition: RouteDefinition): Uint8Array {
    return this.#vault.seal(JSON.stringify(plainOf(definition)), PURPOSE);
  }

  /**
   * @param kinds to find the one of a custom route
   * @throws HF_GATEWAY_ROUTE nothing keeps it any more, or its kind is not here; HF_SECRET_SEALED
   */
  open(name: string, fingerprint: string, kinds: RouteKinds): RouteDefinition {
    const sealed = this.#log.blob(fingerprint);
    if (!sealed) throw unusable(name, 'its definition is not in the log any more');
    const { entry, url, secret } = JSON.parse(this.#vault.open(sealed, PURPOSE)) as Plain;
    const kind = typeof entry.kind === 'string' ? kinds.get(entry.kind) : undefined;
    if (entry.disposition === 'custom' && !kind) {
      throw unusable(name, `no entry of the file brings its kind ${entry.kind}`);
    }
    const parsed = routeSchema.safeParse({ ...entry, ...(kind && { kind }) });
    if (!parsed.data) throw unusable(name, 'its definition is of another version');
    return { entry: parsed.data, url, secret };
  }

  #part(value: unknown): string {
    return this.#vault.fingerprint(value).slice(3, 3 + PART_LENGTH);
  }
}

interface Plain {
  readonly entry: Readonly<Record<string, unknown>>;
  readonly url?: string;
  readonly secret?: string;
}

/** As JSON: a kind is code, and known by its name. */
function plainOf({ entry, url, secret }: RouteDefinition): Plain {
  const { url: _, ...settings }: RouteEntry = entry;
  const plain = 'kind' in settings ? { ...settings, kind: settings.kind.name } : settings;
  return JSON.parse(JSON.stringify({ entry: plain, url, secret })) as Plain;
}

function unusable(name: string, reason: string): HoldfastError {
  return new GatewayError('HF_GATEWAY_ROUTE', { variable: name, reason });
}
