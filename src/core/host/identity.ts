import { hostname } from 'node:os';
import type { Environment } from './config/environment.ts';

/** Which host and instance this is, as its telemetry and its alerts name it. */
export interface Identity {
  /** `host.name` of the semantic conventions. */
  readonly host: string;
  /** `service.instance.id`: the same after a restart, and no other instance's. */
  readonly instance: string;
}

const ATTRIBUTES = 'OTEL_RESOURCE_ATTRIBUTES';

/**
 * The host and instance of a data folder. `OTEL_RESOURCE_ATTRIBUTES` names others, e.g.
 * `host.name=one,service.instance.id=first`, as for every OpenTelemetry program: in a container, whose own host
 * name changes with each start.
 *
 * @param dataDir absolute path of the data folder
 */
export function identityOf(dataDir: string, env: Environment = process.env): Identity {
  const named = resourceAttributes(env);
  const host = named.get('host.name') ?? hostname();
  return { host, instance: named.get('service.instance.id') ?? `${host}:${dataDir}` };
}

/** The pairs of the variable; what is no pair is left out. */
function resourceAttributes(env: Environment): ReadonlyMap<string, string> {
  const pairs = (env[ATTRIBUTES] ?? '').split(',').flatMap((pair) => {
    const [key = '', value = ''] = pair.split(/=(.*)/s, 2).map((part) => part.trim());
    return key !== '' && value !== '' ? [[key, decoded(value)] as const] : [];
  });
  return new Map(pairs);
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
