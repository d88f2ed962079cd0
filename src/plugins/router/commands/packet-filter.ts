/** The address sets of the packet filter of this machine, as `ipset` or `nft` lists them, for a router that runs here. */
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { hostOf } from '../../../core/host/http/addresses.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { FilledSets } from '../config/firewall.ts';
import { readSets } from '../host/set-tools.ts';

/** What the sets hold and who said so, or why nobody can be asked. */
export type SetsReading =
  | { readonly state: 'filled'; readonly source: string; readonly sets: FilledSets }
  | { readonly state: 'assumed'; readonly reason: string };

const TOOLS = ['ipset', 'nft'] as const;

/**
 * Reads the sets of the router whose API has this URL, when that is this machine.
 *
 * @param url base of the router's API
 */
export async function readPacketFilter(url: string, signal: AbortSignal): Promise<SetsReading> {
  const host = hostOf(new URL(url));
  if (!(await isThisMachine(host))) {
    return {
      state: 'assumed',
      reason: `the router is another machine (${host}), and its API does not serve them`,
    };
  }
  const reasons: string[] = [];
  for (const tool of TOOLS) {
    try {
      const sets = new Map(Object.entries(await readSets(tool, { signal })));
      if (sets.size > 0) return { state: 'filled', source: `${tool} on this machine`, sets };
      reasons.push(`${tool} lists no set c_net_…_set6 here`);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCoded(error, 'HF_ROUTER_TOOL')) throw error;
      reasons.push(`${tool}: ${error.what}`);
    }
  }
  return { state: 'assumed', reason: reasons.join('; ') };
}

/** Whether a host is this machine: a loopback address, or one of an interface here. */
export async function isThisMachine(host: string): Promise<boolean> {
  const found = ipaddr.isValid(host)
    ? [{ address: host }]
    : await lookup(host, { all: true }).catch(() => []);
  const own = new Set(
    Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => canonical(address))),
  );
  return found.some(
    ({ address }) => ipaddr.parse(address).range() === 'loopback' || own.has(canonical(address)),
  );
}

function canonical(address: string): string {
  return ipaddr.process(address.replace(/%.*$/, '')).toString();
}
