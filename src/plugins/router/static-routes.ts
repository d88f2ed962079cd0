import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../core/contracts/router.ts';
import { isObject } from '../../core/kernel/json.ts';

/** Names under which routes are kept elsewhere: `static`, `routes`, `staticRoutes`, `static_routes6`, `route4`, … */
const NAME = /^(?:static|(?:static|extra|custom|policy)?routes?[46]?|static[46])$/;
/** Fields that say where a route leads to, and by what way. */
const TO = ['destination', 'dest', 'dst', 'to', 'prefix', 'network', 'cidr', 'subnet', 'target'];
const BY = ['via', 'viaIntf', 'gateway', 'gw', 'nexthop', 'nextHop', 'dev', 'intf', 'interface'];

/**
 * Looks for a static route where one might be posted: anywhere in `routing`, by an interface, or at the top. Routing
 * is the WAN default policy only (R37).
 *
 * @returns its path; undefined when there is none. An empty list or object is none.
 */
export function staticRouteIn(config: NetworkConfig): string[] | undefined {
  const { routing, interface: interfaces } = config;
  return named(config, []) ?? inRouting(routing, ['routing']) ?? inInterfaces(interfaces);
}

function inRouting(value: unknown, path: string[]): string[] | undefined {
  const found = named(value, path);
  if (found) return found;
  if (isRoute(value)) return path;
  for (const [key, item] of entriesOf(value)) {
    // `routing.10.0.0.0/8`: the destination as a name.
    if (ipaddr.isValidCIDR(key) && !isEmpty(item)) return [...path, key];
    const inside = inRouting(item, [...path, key]);
    if (inside) return inside;
  }
  return undefined;
}

function inInterfaces(interfaces: unknown): string[] | undefined {
  for (const [kind, map] of entriesOf(interfaces)) {
    for (const [name, entry] of entriesOf(map)) {
      const found = named(entry, ['interface', kind, name]);
      if (found) return found;
    }
  }
  return undefined;
}

/** A field that is called after static routes and holds something of a shape that could be one. */
function named(value: unknown, path: string[]): string[] | undefined {
  if (!isObject(value)) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const name = key.toLowerCase().replace(/[^a-z0-9]/g, '');
    if (NAME.test(name) && typeof item === 'object' && !isEmpty(item)) return [...path, key];
  }
  return undefined;
}

function isRoute(value: unknown): boolean {
  if (!isObject(value)) return false;
  const leadsTo = TO.some((field) => typeof value[field] === 'string' && ipaddr.isValidCIDR(value[field]));
  return leadsTo && BY.some((field) => value[field] !== undefined);
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}
