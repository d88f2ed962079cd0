import { z } from 'zod';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import type { RouteFacts } from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import { type RouteDefinition, type RouteEntry, routeSchema } from './entry.ts';
import type { RouteKind } from './kind.ts';

const PURPOSE = 'gateway.route';
/** Characters of a setting's fingerprint: enough to tell that the setting changed. */
const SETTING_LENGTH = 12;

/** Custom kinds of routes by name, as the entries of the file bring them. */
export type RouteKinds = ReadonlyMap<string, RouteKind>;

/** A definition in JSON. A kind is code, so only its name is kept. */
const plainDefinition = z.object({
  entry: z.record(z.string(), z.unknown()),
  url: z.string().optional(),
  secret: z.string().optional(),
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
    const { entry, url, secret } = definition;
    const plain = plainOf(definition);
    const address = url === undefined ? undefined : new URL(url);
    const settings = { ...plain.entry, ...plain, entry: undefined, name: undefined };
    return {
      name: entry.name,
      fingerprint: this.#vault.fingerprint(plain),
      disposition: entry.disposition === 'custom' ? entry.kind.name : entry.disposition,
      ...(address && { upstream: address.origin + address.pathname }),
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
    return this.#vault.seal(JSON.stringify(plainOf(definition)), PURPOSE);
  }

  /**
   * @param kinds of which a custom route names one
   * @throws HF_GATEWAY_ROUTE the log has no such blob any more, or the kind is unknown; HF_SECRET_SEALED
   */
  open(name: string, fingerprint: string, kinds: RouteKinds): RouteDefinition {
    const sealed = this.#log.blob(fingerprint);
    if (!sealed) throw unusable(name, 'its definition is not in the log any more');
    const { entry, url, secret } = plainDefinition.parse(JSON.parse(this.#vault.open(sealed, PURPOSE)));
    const kind = typeof entry.kind === 'string' ? kinds.get(entry.kind) : undefined;
    if (entry.disposition === 'custom' && !kind) {
      throw unusable(name, `no entry of the file brings its kind ${entry.kind}`);
    }
    const parsed = routeSchema.safeParse({ ...entry, ...(kind && { kind }) });
    if (!parsed.data) throw unusable(name, 'its definition was recorded by another version');
    return { entry: parsed.data, url, secret };
  }
}

function plainOf({ entry, url, secret }: RouteDefinition): z.output<typeof plainDefinition> {
  const { url: _, ...settings }: RouteEntry = entry;
  const plain = 'kind' in settings ? { ...settings, kind: settings.kind.name } : settings;
  return plainDefinition.parse(JSON.parse(JSON.stringify({ entry: plain, url, secret })));
}

function unusable(name: string, reason: string): HoldfastError {
  return new GatewayError('HF_GATEWAY_ROUTE', { variable: name, reason });
}
