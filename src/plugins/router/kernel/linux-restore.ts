import { isConfigurable } from '../generated/names.ts';
import { IpBatch, type IpOptions } from './linux-batch.ts';
import { cidrWord, nameWord, routeLine } from './linux-lines.ts';
import { type LinuxLink, readSnapshot, type Snapshot } from './linux-snapshot.ts';

/** Long enough for any network; a kernel that hangs must not keep an apply from its answer. */
const DEADLINE_MS = 60_000;

/**
 * Brings devices back to what was read before: links, addresses, and every route through one device, whoever made it.
 * It goes as far as it can, for what cannot be taken back must not keep the rest from it.
 */
export async function restore(
  options: IpOptions,
  before: Snapshot,
  touched: ReadonlySet<string>,
): Promise<void> {
  const batch = new IpBatch({ ...options, force: true }, AbortSignal.timeout(DEADLINE_MS));
  const names = [...touched].filter(isConfigurable);
  const now = await readSnapshot(batch);
  for (const name of names)
    if (!before.links.has(name) && now.links.has(name)) batch.run(`link del dev ${name}`);
  const links = names.flatMap((name) => before.links.get(name) ?? []).sort(lowerFirst);
  for (const link of links) {
    if (!now.links.has(link.name) || isOther(link, now.links.get(link.name))) make(batch, link, now);
    const master = link.master;
    batch.run(`link set dev ${link.name} ${master === undefined ? 'nomaster' : `master ${master}`}`);
    for (const member of before.links.values())
      if (member.master === link.name) batch.run(`link set dev ${nameWord(member.name)} master ${link.name}`);
    await restoreAddresses(batch, link, now);
  }
  for (const route of before.routes) {
    const [intf] = route.devices;
    if (intf === undefined || !touched.has(intf) || route.protocol === 'kernel') continue;
    const line = routeLine('replace', route);
    if (line !== undefined) batch.run(line);
  }
  await batch.end();
}

async function restoreAddresses(
  batch: IpBatch,
  { name, up, addresses }: LinuxLink,
  now: Snapshot,
): Promise<void> {
  // Takes with it every route that the failed apply made.
  await batch.disableIpv6(name, true);
  batch.run(`link set dev ${name} down`);
  const had = new Set(addresses.map(({ address }) => address));
  for (const { family, address } of now.links.get(name)?.addresses ?? []) {
    if (family === 4 && !had.has(address)) batch.run(`address del ${cidrWord(address, 4, name)} dev ${name}`);
  }
  const hasIpv6 = addresses.some(({ family }) => family === 6);
  if (hasIpv6 || !up) await batch.disableIpv6(name, false);
  if (up) batch.run(`link set dev ${name} up`);
  for (const { family, address, linkLocal, dynamic } of addresses) {
    if (linkLocal || (dynamic && family === 6)) continue; // the kernel and the next advertisement make these
    const broadcast = family === 4 ? 'brd + ' : '';
    batch.run(`address replace ${cidrWord(address, family, name)} ${broadcast}dev ${name}`);
  }
}

function make(batch: IpBatch, { name, kind, lower, vid }: LinuxLink, now: Snapshot): void {
  if (now.links.has(name)) batch.run(`link del dev ${name}`);
  if (kind === 'vlan' && lower !== undefined && vid !== undefined)
    batch.run(`link add link ${lower} name ${name} type vlan id ${vid}`);
  else if (kind === 'bridge' || kind === 'bond' || kind === 'wireguard')
    batch.run(`link add name ${name} type ${kind}`);
}

function isOther(before: LinuxLink, now: LinuxLink | undefined): boolean {
  return before.kind === 'vlan' && (before.vid !== now?.vid || before.lower !== now?.lower);
}

/** VLANs after what they stand on. */
function lowerFirst(a: LinuxLink, b: LinuxLink): number {
  return Number(a.lower !== undefined) - Number(b.lower !== undefined);
}
