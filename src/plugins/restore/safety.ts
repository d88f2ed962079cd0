import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { MemoryStore } from '../../core/contracts/memory-store.ts';
import { originOf, placeOf } from '../../core/host/http/addresses.ts';
import { RestoreError } from './errors.ts';

/** Stands for all addresses of this machine. */
const LOCAL = 'this machine';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
loopback.addAddress('0.0.0.0', 'ipv4');
loopback.addAddress('::', 'ipv6');

/**
 * Refuses a target that is, or resolves to, the live store. Nothing is sent to either.
 *
 * @param url of the scratch instance
 * @throws HF_RESTORE_LIVE; HF_RESTORE_SCRATCH its name cannot be resolved
 */
export async function refuseLiveAddress(liveUrl: string, url: string): Promise<void> {
  const [live, target] = [new URL(liveUrl), new URL(url)];
  if ([live, target].some((each) => placeOf(each.href).socketPath !== undefined)) {
    if (originOf(live) === originOf(target)) throw isLive(url, 'it has the same address');
    return; // whatever leads to the same socket, the comparison of identities decides
  }
  if (portOf(live) !== portOf(target)) return;
  if (nameOf(live) === nameOf(target)) throw isLive(url, 'it has the same address');
  const targets = await addressesOf(target).catch(() => {
    throw new RestoreError('HF_RESTORE_SCRATCH', { reason: `${target.hostname} cannot be resolved` });
  });
  // When the name of the live store cannot be resolved here, the comparison of identities decides.
  const lives: readonly string[] = await addressesOf(live).catch(() => []);
  const shared = targets.find((address) => lives.includes(address));
  if (shared !== undefined) throw isLive(url, `both resolve to ${shared}, port ${portOf(live)}`);
}

/**
 * Refuses an instance that says it is the live one, whatever way leads there. Only reads.
 *
 * @throws HF_RESTORE_LIVE, HF_MEMORY_*
 */
export async function refuseLiveInstance(
  live: MemoryStore,
  target: MemoryStore,
  signal: AbortSignal,
): Promise<void> {
  const [one, other] = await Promise.all([live.about(signal), target.about(signal)]);
  if (one.instance !== undefined && one.instance === other.instance) {
    throw isLive(target.url, 'it says that it is that very instance');
  }
}

/**
 * Refuses a target that holds the collection already: an empty instance does not, and the live store, by whatever
 * name, does.
 *
 * @throws HF_RESTORE_LIVE, HF_MEMORY_*
 */
export async function refuseFilled(
  target: MemoryStore,
  collection: string,
  signal: AbortSignal,
): Promise<void> {
  if ((await target.collection(collection, signal)) !== undefined) {
    throw isLive(target.url, `it holds a collection ${collection}, which no empty instance does`);
  }
}

const isLive = (url: string, reason: string) =>
  new RestoreError('HF_RESTORE_LIVE', { url: originOf(new URL(url)), reason });

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');

const nameOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase();

async function addressesOf(url: URL): Promise<string[]> {
  const name = nameOf(url);
  if (name === 'localhost' || name.endsWith('.localhost')) return [LOCAL];
  const found = isIP(name) ? [{ address: name }] : await lookup(name, { all: true });
  return found.map(({ address }) => canonical(address));
}

function canonical(address: string): string {
  // `::ffff:127.0.0.1`, which URL writes as `::ffff:7f00:1`, is an IPv4 address.
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (loopback.check(address, family)) return LOCAL;
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const mine = new BlockList();
  for (const { address: ours, family: kind } of own) mine.addAddress(ours, kind === 'IPv6' ? 'ipv6' : 'ipv4');
  return mine.check(address, family) ? LOCAL : address;
}
