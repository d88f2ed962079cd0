/** The address sets of the packet filter of this machine, as `ipset` or `nft` lists them, for a router that runs here. */
import { execFile } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { isObject } from '../../../core/kernel/json.ts';
import type { FilledSets } from '../config/firewall.ts';

/** What the sets hold and who said so, or why nobody can be asked. */
export type SetsReading =
  | { readonly state: 'filled'; readonly source: string; readonly sets: FilledSets }
  | { readonly state: 'assumed'; readonly reason: string };

const TIMEOUT_MS = 10_000;
const LARGEST_OUTPUT = 64 * 1_048_576;
/** Only these: a package of Node is called `nft`, too, and npm puts it first. */
const PATH = '/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin';
const OURS = /^c_net_.*_set6$/;

const TOOLS = [
  { program: 'ipset', args: ['save'], parse: setsOfIpset },
  { program: 'nft', args: ['-j', 'list', 'sets'], parse: setsOfNft },
] as const;

/**
 * Reads the sets of the router whose API has this URL, when that is this machine.
 *
 * @param url base of the router's API
 */
export async function readPacketFilter(url: string, signal: AbortSignal): Promise<SetsReading> {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (!(await isThisMachine(host))) {
    return {
      state: 'assumed',
      reason: `the router is another machine (${host}), and its API does not serve them`,
    };
  }
  const reasons: string[] = [];
  for (const { program, args, parse } of TOOLS) {
    try {
      const sets = parse(await run(program, args, signal));
      if (sets.size > 0) return { state: 'filled', source: `${program} on this machine`, sets };
      reasons.push(`${program} lists no set c_net_…_set6 here`);
    } catch (error) {
      signal.throwIfAborted();
      reasons.push(`${program}: ${reasonOf(error)}`);
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

async function run(program: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const options = { timeout: TIMEOUT_MS, maxBuffer: LARGEST_OUTPUT, signal, env: { PATH, LC_ALL: 'C' } };
  return (await promisify(execFile)(program, args, options)).stdout;
}

function reasonOf(error: unknown): string {
  const { code, stderr, message } = error as { code?: unknown; stderr?: unknown; message?: string };
  if (code === 'ENOENT') return 'it is not installed';
  const [line] = String(stderr ?? '')
    .trim()
    .split('\n');
  return line || message || 'it failed';
}

/** `create NAME hash:net …`, then `add NAME MEMBER …`. */
function setsOfIpset(text: string): Map<string, string[]> {
  const sets = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [verb, name = '', member = ''] = line.split(' ');
    if (!OURS.test(name)) continue;
    if (verb === 'create') sets.set(name, []);
    if (verb === 'add') sets.get(name)?.push(...prefixOf(member));
  }
  return sets;
}

function setsOfNft(text: string): Map<string, string[]> {
  const sets = new Map<string, string[]>();
  const { nftables }: { nftables?: unknown } = JSON.parse(text);
  for (const item of Array.isArray(nftables) ? nftables : []) {
    const set = isObject(item) && isObject(item.set) ? item.set : {};
    if (typeof set.name !== 'string' || !OURS.test(set.name)) continue;
    sets.set(set.name, (Array.isArray(set.elem) ? set.elem : []).flatMap(memberOfNft));
  }
  return sets;
}

/** A text, `{ prefix: { addr, len } }`, or either inside of `{ elem: { val } }`. */
function memberOfNft(member: unknown): string[] {
  if (typeof member === 'string') return prefixOf(member);
  if (!isObject(member)) return [];
  if (isObject(member.elem)) return memberOfNft(member.elem.val);
  const { addr, len } = isObject(member.prefix) ? member.prefix : {};
  return prefixOf(`${String(addr)}/${String(len)}`);
}

/** Members of other kinds, such as the name of another set, hold no prefix. */
function prefixOf(member: string): string[] {
  if (ipaddr.IPv6.isValidCIDR(member)) return [member];
  return ipaddr.IPv6.isValid(member) ? [`${member}/128`] : [];
}
