import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { advertisingLegs, generateFiles, v6File } from './generated-files.ts';
import { interfacesOf, isWan, stringsOf } from './network-config.ts';
import { type AddressLookup, globalNetwork } from './networks.ts';

/** Another sender of router advertisements. */
export interface RaSource {
  readonly name: string;
  /** It may announce every prefix inside one of these. */
  readonly prefixes: readonly string[];
  /** Seconds. */
  readonly lifetime: number;
}

/** A prefix of an advertisement that the kernel received on a leg. */
export interface ObservedRa {
  readonly intf: string;
  readonly prefix: string;
  /** Seconds. */
  readonly lifetime: number;
}

export interface AnnouncedBy {
  readonly name: string;
  readonly lifetime: number;
  /** The kernel received it; otherwise it follows from the config or from the option. */
  readonly received?: true;
}

/** A prefix on a leg, and who announces it. */
export interface AdvertisedPrefix {
  readonly prefix: string;
  readonly ula: boolean;
  /** The router first, when it advertises there; lifetimes in seconds. */
  readonly sources: readonly AnnouncedBy[];
  /** It has two or more sources, so a client uses the lifetime of the advertisement that it received last. */
  readonly conflict: boolean;
}

export interface LegAdvertisement {
  readonly intf: string;
  readonly label: string;
  /** Whether the router sends advertisements there. */
  readonly advertises: boolean;
  /** Seconds between its advertisements, and seconds for which a client may use it as its default router. */
  readonly interval?: number;
  readonly routerLifetime?: number;
  readonly prefixes: readonly AdvertisedPrefix[];
}

const ROUTER = 'the router';
const UNNAMED = 'another sender';

/**
 * What each leg advertises (R20): the DHCP daemon's `constructor:` mode announces the prefix of every global-scope
 * address of the interface, and a ULA is of global scope. The lifetimes are those of the generated file.
 *
 * @param sources others that announce on these networks
 * @param currentAddresses addresses that an interface has now; else the static ones of the config
 * @param received prefixes of advertisements that the kernel received. One with the lifetime of a source's own, or of the
 * router's where it advertises, is taken for that source's: the kernel does not say who sent it
 */
export function advertisements(
  config: NetworkConfig,
  sources: readonly RaSource[],
  currentAddresses?: AddressLookup,
  received: readonly ObservedRa[] = [],
): LegAdvertisement[] {
  const speaking = new Set(advertisingLegs(config));
  const files = generateFiles(config);
  return interfacesOf(config).flatMap(({ name: intf, config: fields }) => {
    const { type, name } = (fields.meta ?? {}) as { type?: unknown; name?: unknown };
    if (type !== 'lan' || isWan(fields)) return [];
    const advertises = speaking.has(intf) && fields.enabled !== false;
    const [, lease, interval, routerLifetime] = timesIn(files.get(v6File(intf)) ?? '');
    const here = received.filter((one) => one.intf === intf);
    const own = new Set((currentAddresses?.(intf) ?? stringsOf(fields.ipv6)).flatMap(globalNetwork));
    const foreign = here.map(({ prefix }) => prefix).filter((prefix) => !own.has(prefix));
    return {
      intf,
      label: typeof name === 'string' && name !== '' ? name : intf,
      advertises,
      ...(advertises && { interval: Number(interval), routerLifetime: Number(routerLifetime) }),
      prefixes: [...own, ...new Set(foreign)].map((prefix): AdvertisedPrefix => {
        const routers = advertises && own.has(prefix) ? [{ name: ROUTER, lifetime: Number(lease) }] : [];
        const others = sources.filter((source) => source.prefixes.some((wide) => isInside(prefix, wide)));
        const known = [...routers, ...others.map(({ name, lifetime }) => ({ name, lifetime }))];
        const lifetimes = new Set(
          here.filter((one) => one.prefix === prefix).map(({ lifetime }) => lifetime),
        );
        const all: AnnouncedBy[] = known.map((one) => ({
          ...one,
          ...(one.name !== ROUTER && lifetimes.has(one.lifetime) && { received: true as const }),
        }));
        for (const lifetime of lifetimes)
          if (!known.some((one) => one.lifetime === lifetime))
            all.push({ name: UNNAMED, lifetime, received: true });
        return { prefix, ula: isInside(prefix, 'fc00::/7'), sources: all, conflict: all.length > 1 };
      }),
    };
  });
}

/** What a leg's advertisements mean for its clients, as sentences. */
export function advertisementNotes({ label, advertises, prefixes }: LegAdvertisement): string[] {
  const notes: string[] = [];
  if (!advertises) {
    notes.push(
      `${label} has no dhcp6 section, so the router sends no advertisement there: its clients get neither a global address nor an IPv6 default router from it`,
    );
  }
  for (const { prefix, sources, conflict } of prefixes) {
    if (!conflict) continue;
    const lifetimes = sources.map(({ name, lifetime }) => `${name} ${lifetime} s`).join(', ');
    notes.push(
      `conflict: ${prefix} has ${sources.length} sources (${lifetimes}); the last advertisement received sets the lifetime`,
    );
    const [own, ...others] = sources;
    if (own?.name !== ROUTER) continue;
    for (const { name } of others)
      notes.push(
        `${name} can no longer deprecate ${prefix} there: the router's next advertisement renews it for ${own.lifetime} s`,
      );
  }
  return notes;
}

/** Lease, interval and lifetime as the generated file has them. */
function timesIn(file: string): string[] {
  const [, lease = ''] = /^dhcp-range=.*,slaac,(\d+)$/m.exec(file) ?? [];
  const [, interval = '', lifetime = ''] = /^ra-param=[^,]*,(\d+),(\d+)$/m.exec(file) ?? [];
  return ['', lease, interval, lifetime];
}

function isInside(prefix: string, wide: string): boolean {
  const [address, bits] = ipaddr.parseCIDR(prefix);
  const [base, wideBits] = ipaddr.parseCIDR(wide);
  return address.kind() === base.kind() && bits >= wideBits && address.match(base, wideBits);
}
