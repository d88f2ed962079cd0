/** What happens to the kernel without a config, as messages for the machines that model it (R17, R18, R21). */
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { delegatingLegs, interfaceOf, interfacesOf, isWan, stringsOf } from '../config/network-config.ts';
import { publishAddresses } from './address-sets.ts';
import type { EmbeddedRouter } from './embedded-router.ts';
import type { Snapshot } from './kernel/linux-snapshot.ts';
import { delegatedAddress } from './kernel/steps.ts';
import { expectedWan, wanEvent } from './wan.ts';

const RECENT = 8;

/**
 * Compares what the kernel has with what the machines know of it, and publishes what differs: a delegated prefix, a WAN that
 * lost or got its connection, addresses that a DHCP client changed by itself.
 */
export class KernelEvents {
  readonly #router: EmbeddedRouter;
  readonly #services: Pick<Services, 'actors' | 'bus' | 'logger'>;
  /** Delegated prefixes that the last reading showed. */
  #delegated: readonly string[] | undefined;
  /** Prefixes that were known lately, by WAN: while one is replaced, addresses of both are the router's own. */
  readonly #recent = new Map<string, readonly string[]>();
  /** Addresses of others that the last reading showed, by interface. */
  #foreign: ReadonlyMap<string, string> | undefined;

  constructor(router: EmbeddedRouter, services: Pick<Services, 'actors' | 'bus' | 'logger'>) {
    this.#router = router;
    this.#services = services;
  }

  /** @param now what the kernel has, read while no apply was running */
  async follow(now: Snapshot): Promise<void> {
    const config: NetworkConfig = JSON.parse((await this.#router.active()).body);
    const wans = interfacesOf(config)
      .filter(({ config: fields }) => isWan(fields))
      .map(({ name }) => name);
    this.#connections(wans, now);
    const delegating = wans.filter((wan) => delegatingLegs(config, wan).length > 0);
    this.#delegations(delegating, now);
    this.#addresses(config, delegating, now);
    await publishAddresses(this.#router, this.#services);
  }

  /** A WAN is connected while it has a carrier and a default route leads through it. */
  #connections(wans: readonly string[], { links, routes }: Snapshot): void {
    const defaults = new Set(
      routes.flatMap(({ destination, devices }) => (destination === 'default' ? devices : [])),
    );
    for (const wan of wans) {
      const link = links.get(wan);
      const { up, connected } = expectedWan(this.#services, wan);
      if (link === undefined || !up) continue;
      const isConnected = link.running === true && defaults.has(wan);
      if (isConnected === connected) continue;
      this.#services.bus.publish(wanEvent, { wan, kind: isConnected ? 'connected' : 'lost' });
    }
  }

  #delegations(wans: readonly string[], { delegated }: Snapshot): void {
    const known = new Map(wans.map((wan) => [wan, expectedWan(this.#services, wan).prefix]));
    const { prefixes, unclear } = delegationsOf(known, this.#delegated, delegated);
    this.#delegated = delegated;
    for (const [wan, prefix] of prefixes)
      this.#services.bus.publish(wanEvent, { wan, kind: 'pd-change', prefix });
    if (unclear.length > 0) this.#services.logger.warn({ prefixes: unclear }, 'router.delegation_unclear');
  }

  /** Addresses on WANs and delegating legs that neither the config nor a known prefix gives. */
  #addresses(config: NetworkConfig, wans: readonly string[], { links }: Snapshot): void {
    const before = this.#foreign;
    const foreign = new Map<string, string>();
    const isChanged = (intf: string, own: readonly (string | undefined)[]): boolean => {
      const others = (links.get(intf)?.addresses ?? [])
        .filter(({ family, linkLocal, address }) => family === 6 && !linkLocal && !own.includes(address))
        .map(({ address }) => address)
        .sort()
        .join(' ');
      foreign.set(intf, others);
      return before !== undefined && before.get(intf) !== others;
    };
    for (const wan of wans) {
      const prefixes = this.#recentPrefixes(wan);
      const statics = (intf: string) => stringsOf(interfaceOf(config, intf)?.config.ipv6);
      const legs = delegatingLegs(config, wan).filter((leg, place) =>
        isChanged(leg, [
          ...statics(leg),
          ...prefixes.map((prefix) => delegatedAddress(new Map([[wan, { up: true, prefix }]]), wan, place)),
        ]),
      );
      const isOwn = isChanged(wan, statics(wan));
      if (isOwn || legs.length > 0)
        this.#services.bus.publish(wanEvent, { wan, kind: 'readdressed', ...(legs.length > 0 && { legs }) });
    }
    this.#foreign = foreign;
  }

  #recentPrefixes(wan: string): readonly string[] {
    const { prefix } = expectedWan(this.#services, wan);
    const known = [...(this.#recent.get(wan) ?? []), ...(prefix === undefined ? [] : [prefix])];
    const recent = [...new Set([...known, ...(this.#delegated ?? [])])].slice(-RECENT);
    this.#recent.set(wan, recent);
    return recent;
  }
}

/**
 * Which WAN was delegated another prefix. The kernel's route does not name the WAN: with one delegating WAN it is that one,
 * with several the one whose prefix is gone.
 *
 * @param known the prefix of each delegating WAN, as far as known
 * @param before the prefixes that the reading before this one showed; undefined for the first, where a WAN that still has
 * its prefix keeps it
 * @param now the prefixes that the kernel has
 * @returns the new prefix of each WAN that has one, and prefixes that could belong to several
 */
export function delegationsOf(
  known: ReadonlyMap<string, string | undefined>,
  before: readonly string[] | undefined,
  now: readonly string[],
): { readonly prefixes: ReadonlyMap<string, string>; readonly unclear: readonly string[] } {
  const taken = new Set(known.values());
  const open = [...known].filter(([, prefix]) => prefix === undefined || !now.includes(prefix));
  const old = before ?? (open.length === 0 ? now : []);
  const added = now.filter((prefix) => !taken.has(prefix) && !old.includes(prefix));
  const newest = added.at(-1);
  const prefixes = new Map<string, string>();
  if (known.size === 0 || newest === undefined) return { prefixes, unclear: [] };
  const candidates = known.size === 1 ? [...known.keys()] : open.map(([name]) => name);
  const [wan] = candidates;
  const isClear = candidates.length === 1 && (known.size === 1 || added.length === 1);
  if (wan === undefined || !isClear) return { prefixes, unclear: added };
  return { prefixes: prefixes.set(wan, newest), unclear: [] };
}
