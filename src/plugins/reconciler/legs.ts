import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../core/contracts/router.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { KeptField } from '../../machines/reconciler/leg-shapes.ts';

/** A static address that an interface should have, or a field with the value that it should have. */
export interface LegAddress {
  readonly intf: string;
  /** With prefix length, normalised; of a field its value, canonical JSON. */
  readonly address: string;
  readonly keep?: KeptField;
}

/** One leg in a config. */
export interface LegReading {
  readonly ncid: string;
  /** Its static IPv6 addresses, normalised and in their order; undefined when there is no such interface. */
  readonly addresses: readonly string[] | undefined;
  /** Its name, when that is one of a network that is never touched. */
  readonly refusedName?: string;
}

/** Networks of other people. They are never changed, whatever the name of their interface (R24). */
const NEVER_NAMES: readonly string[] = ['guest', 'telework'];

/** Whether a network of this name is never touched. Case, surrounding space and Unicode spelling make no difference. */
export function isNeverTouched(name: string): boolean {
  return NEVER_NAMES.includes(
    name
      .normalize('NFKC')
      .replace(/\p{Cf}/gu, '')
      .trim()
      .toLowerCase(),
  );
}

/**
 * The one form of an IPv6 address with prefix length (RFC 5952), so that two spellings compare equal. A bare
 * address is a /128. A text that is no address is returned in lower case.
 */
export function normaliseCidr(text: string): string {
  const [address = '', prefix = '128', ...rest] = text.trim().split('/');
  if (rest.length > 0 || !ipaddr.IPv6.isValid(address) || !/^\d{1,3}$/.test(prefix))
    return text.toLowerCase();
  return `${ipaddr.IPv6.parse(address).toRFC5952String()}/${Number(prefix)}`;
}

/** Reads one leg from an active config. The `ipv6` field may be absent, a string or a list. */
export function readLeg(config: NetworkConfig, intf: string): LegReading {
  const ncid = typeof config.ncid === 'string' ? config.ncid : '';
  const entry = find(config, intf)?.entry;
  const refusedName = entry && refusedNameOf(entry);
  return {
    ncid,
    addresses: entry && addressesOf(entry).map(normaliseCidr),
    ...(refusedName !== undefined && { refusedName }),
  };
}

/**
 * The config to post: the config that was read, with each leg's address added after its other addresses and no other
 * change. Legs whose interface is not in the config, or has a name that is never touched, are left out.
 *
 * @param config is not changed
 * @returns the body, the legs that were added to it, and those refused by the name of their interface
 */
export function withAddresses(
  config: NetworkConfig,
  legs: readonly LegAddress[],
): { body: NetworkConfig; added: readonly LegAddress[]; refused: ReadonlyMap<string, string> } {
  let body = config;
  const added: LegAddress[] = [];
  const refused = new Map<string, string>();
  for (const leg of legs) {
    const found = find(body, leg.intf);
    if (!found) continue;
    const refusedName = refusedNameOf(found.entry);
    if (refusedName !== undefined) {
      refused.set(leg.intf, refusedName);
      continue;
    }
    const addresses = addressesOf(found.entry);
    if (addresses.map(normaliseCidr).includes(leg.address)) continue;
    const { interfaces, kind, kinds, entry } = found;
    const changed = { ...entry, ipv6: [...addresses, leg.address] };
    body = { ...body, interface: { ...interfaces, [kind]: { ...kinds, [leg.intf]: changed } } };
    added.push(leg);
  }
  return { body, added, refused };
}

/** The config with one interface's entry changed; the same config when it has no such interface. */
export function withEntry(
  config: NetworkConfig,
  intf: string,
  change: (entry: Record<string, unknown>) => Record<string, unknown>,
): NetworkConfig {
  const found = find(config, intf);
  if (!found) return config;
  const { interfaces, kind, kinds, entry } = found;
  return { ...config, interface: { ...interfaces, [kind]: { ...kinds, [intf]: change(entry) } } };
}

/** An interface name is unique over all kinds (`phy`, `vlan`, `bridge`, …). */
function find(config: NetworkConfig, intf: string) {
  const interfaces = config.interface;
  if (!isObject(interfaces)) return undefined;
  for (const [kind, kinds] of Object.entries(interfaces)) {
    if (!isObject(kinds) || !Object.hasOwn(kinds, intf)) continue;
    const entry = kinds[intf];
    if (isObject(entry)) return { interfaces, kind, kinds, entry };
  }
  return undefined;
}

function refusedNameOf({ meta }: Record<string, unknown>): string | undefined {
  const name = isObject(meta) ? meta.name : undefined;
  return typeof name === 'string' && isNeverTouched(name) ? name.trim() : undefined;
}

function addressesOf({ ipv6 }: Record<string, unknown>): string[] {
  if (typeof ipv6 === 'string') return ipv6 === '' ? [] : [ipv6];
  return Array.isArray(ipv6) ? ipv6.filter((address) => typeof address === 'string') : [];
}
