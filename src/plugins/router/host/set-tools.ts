/** The packet filter's IPv6 address sets in the kernel, by `nft` or by `ipset`. */
import ipaddr from 'ipaddr.js';
import { isObject } from '../../../core/kernel/json.ts';
import { RouterError } from '../errors.ts';
import { pathOf, runTool } from './tool.ts';

/** The prefixes of each set, by the set's name. */
type Sets = Readonly<Record<string, readonly string[]>>;

export type SetTool = 'nft' | 'ipset';

export interface SetToolOptions {
  /** A namespace by its name; this process's own without one. */
  readonly namespace?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The table of nftables that holds the sets. Rules of other programs may name sets of it. */
const TABLE = 'holdfast';
const SET_NAME = /^c_net_[A-Za-z0-9-]{1,13}_set6$/;
/** Other programs' sets of that kind may have names that this one does not give. */
const ANY_SET = /^c_net_.*_set6$/;
/** While a set of `ipset` is filled, its next content is in another one. */
const NEXT = '_next';

/** @returns the first of the tools that is installed */
export function installedSetTool(): SetTool | undefined {
  const tools = ['nft', 'ipset'] as const;
  return tools.find((tool) => pathOf(tool) !== undefined);
}

/**
 * Fills each set as listed, all of them at once with `nft`, one after another with `ipset`, and empties the router's other sets.
 *
 * @throws HF_ROUTER_TOOL the tool refused; with `nft` nothing is changed then
 */
export async function fillSets(tool: SetTool, wanted: Sets, options: SetToolOptions): Promise<void> {
  for (const name of Object.keys(wanted)) {
    if (SET_NAME.test(name)) continue;
    const reason = `a network's uuid gives a set the name ${name.replace(/[^\w-]/g, '?')}, which it does not take`;
    throw new RouterError('HF_ROUTER_TOOL', { program: tool, reason });
  }
  const existing = Object.keys(await readSets(tool, options)).filter((name) => SET_NAME.test(name));
  const all: Sets = { ...Object.fromEntries(existing.map((name) => [name, []])), ...wanted };
  const lines = Object.entries(all).flatMap(([name, prefixes]) =>
    tool === 'nft' ? nftLines(name, widest(prefixes)) : ipsetLines(name, prefixes),
  );
  const input = `${(tool === 'nft' ? [`add table inet ${TABLE}`, ...lines] : lines).join('\n')}\n`;
  const args = tool === 'nft' ? ['-f', '-'] : ['restore', '-exist'];
  await runTool({ program: tool, args, input, ...options });
}

/**
 * The content of every set with the name of a network's, in whichever table it is.
 *
 * @throws HF_ROUTER_TOOL
 */
export async function readSets(tool: SetTool, options: SetToolOptions): Promise<Sets> {
  const args = tool === 'nft' ? ['--json', 'list', 'sets'] : ['save'];
  const output = await runTool({ program: tool, args, ...options });
  return tool === 'nft' ? setsOfNft(output) : setsOfIpset(output);
}

/** Those of the wanted prefixes that a set holds, by themselves or inside a wider one. */
export function heldPrefixes(wanted: Sets, content: Sets): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([name, prefixes]) => {
      const held = content[name];
      return held ? [[name, prefixes.filter((prefix) => held.some((wide) => isWithin(prefix, wide)))]] : [];
    }),
  );
}

/** Whether the sets hold what they were filled with, and nothing else. Neither lists an empty set. */
export function hold(content: Sets, filled: Sets): boolean {
  const held = heldPrefixes(filled, content);
  return (
    Object.keys(content).every((name) => content[name]?.every((member) => filled[name]?.includes(member))) &&
    Object.keys(filled).every((name) => held[name]?.length === filled[name]?.length)
  );
}

function nftLines(name: string, prefixes: readonly string[]): string[] {
  return [
    `add set inet ${TABLE} ${name} { type ipv6_addr; flags interval; }`,
    `flush set inet ${TABLE} ${name}`,
    ...(prefixes.length > 0 ? [`add element inet ${TABLE} ${name} { ${prefixes.join(', ')} }`] : []),
  ];
}

/** A set is never seen half filled: its next content takes its place in one step. */
function ipsetLines(name: string, prefixes: readonly string[]): string[] {
  return [
    `create ${name} hash:net family inet6`,
    `create ${name}${NEXT} hash:net family inet6`,
    `flush ${name}${NEXT}`,
    ...prefixes.map((prefix) => `add ${name}${NEXT} ${prefix}`),
    `swap ${name} ${name}${NEXT}`,
    `destroy ${name}${NEXT}`,
  ];
}

/** nftables takes no element that lies inside another one. */
function widest(prefixes: readonly string[]): string[] {
  const all = [...new Set(prefixes)];
  return all.filter((prefix) => !all.some((wide) => wide !== prefix && isWithin(prefix, wide)));
}

function setsOfNft(output: string): Sets {
  if (output.trim() === '') return {}; // what it prints where there is no table yet
  const { nftables } = JSON.parse(output) as { nftables?: unknown };
  const sets: Record<string, string[]> = {};
  for (const entry of Array.isArray(nftables) ? nftables : []) {
    const set = isObject(entry) && isObject(entry.set) ? entry.set : {};
    if (typeof set.name !== 'string' || !ANY_SET.test(set.name)) continue;
    const members = (Array.isArray(set.elem) ? set.elem : []).flatMap(memberOfNft);
    sets[set.name] = [...(sets[set.name] ?? []), ...members];
  }
  return sets;
}

/** A text, `{ prefix: { addr, len } }`, or either inside of `{ elem: { val } }`. A range holds no prefix that it could prove. */
function memberOfNft(member: unknown): string[] {
  if (typeof member === 'string') return prefixOf(member);
  if (!isObject(member)) return [];
  if (isObject(member.elem)) return memberOfNft(member.elem.val);
  const { addr, len } = isObject(member.prefix) ? member.prefix : {};
  return prefixOf(`${String(addr)}/${String(len)}`);
}

/** `create NAME hash:net …`, then `add NAME MEMBER …`. */
function setsOfIpset(output: string): Sets {
  const sets: Record<string, string[]> = {};
  for (const line of output.split('\n')) {
    const [verb, name = '', member = ''] = line.split(' ');
    if (!ANY_SET.test(name)) continue;
    if (verb === 'create') sets[name] ??= [];
    if (verb === 'add') sets[name]?.push(...prefixOf(member));
  }
  return sets;
}

/** Members of other kinds, such as the name of another set, hold no prefix. */
function prefixOf(member: string): string[] {
  if (ipaddr.IPv6.isValidCIDR(member)) return [member];
  return ipaddr.IPv6.isValid(member) ? [`${member}/128`] : [];
}

function isWithin(prefix: string, wide: string): boolean {
  if (!ipaddr.IPv6.isValidCIDR(prefix) || !ipaddr.IPv6.isValidCIDR(wide)) return false;
  const [address, bits] = ipaddr.IPv6.parseCIDR(prefix);
  const [base, wideBits] = ipaddr.IPv6.parseCIDR(wide);
  return bits >= wideBits && address.match(base, wideBits);
}
