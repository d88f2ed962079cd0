/** What a router's own host really has: addresses, address sets, chains, generated files and the DHCP service. */
import { readdir, readFile } from 'node:fs/promises';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { AddressLookup } from '../config/networks.ts';
import { readSets } from './set-tools.ts';
import { pathOf, runTool, type ToolCall } from './tool.ts';

export type HostCall = Pick<ToolCall, 'namespace' | 'signal'>;

/** What was read, or why it could not be. */
export type Reading<T> = { readonly value: T } | { readonly reason: string };

/** The addresses that the kernel has now. */
export function addressesOf(call: HostCall): Promise<Reading<AddressLookup>> {
  return attempt(() => readAddresses(call));
}

async function readAddresses(call: HostCall): Promise<AddressLookup> {
  const output = await runTool({ program: 'ip', args: ['-json', '-6', 'address', 'show'], ...call });
  const links = JSON.parse(output) as unknown[];
  const found = new Map(
    links.filter(isObject).map(({ ifname, addr_info }): [string, string[]] => {
      const all = Array.isArray(addr_info) ? addr_info.filter(isObject) : [];
      return [String(ifname), all.map(({ local, prefixlen }) => `${String(local)}/${String(prefixlen)}`)];
    }),
  );
  return (intf) => found.get(intf);
}

/** The sets that `ipset` and `nft` list, as far as they are installed. */
export async function setsOf(call: HostCall): Promise<Reading<Readonly<Record<string, readonly string[]>>>> {
  const tools = (['ipset', 'nft'] as const).filter((tool) => pathOf(tool) !== undefined);
  if (tools.length === 0) return { reason: 'neither ipset nor nft is installed' };
  const readings = await Promise.all(tools.map((tool) => attempt(() => readSets(tool, call))));
  const sets: Record<string, readonly string[]> = Object.assign(
    {},
    ...readings.map((one) => ('value' in one ? one.value : {})),
  );
  const reasons = readings.flatMap((one) => ('reason' in one ? [one.reason] : []));
  // What one tool cannot show may be all there is.
  return reasons.length > 0 && Object.keys(sets).length === 0
    ? { reason: reasons.join(' ') }
    : { value: sets };
}

/** A chain of the packet filter and where it sends what. */
export interface ChainRules {
  /** Names of all chains. */
  readonly chains: ReadonlySet<string>;
  /** Chain to which FW_FORWARD sends sources in fc00::/7. */
  readonly ulaTarget: string | undefined;
}

/** The two kinds of ip6tables keep their rules in different places of the kernel, and neither lists those of the other. */
const SAVES = ['ip6tables-save', 'ip6tables-legacy-save'];

/** The chains that `ip6tables-save`, `ip6tables-legacy-save` or `nft` lists, the first of them that has FW_FORWARD. */
export async function chainsOf(call: HostCall): Promise<Reading<ChainRules>> {
  const readings: Reading<ChainRules>[] = [];
  for (const program of SAVES) {
    const saved = await attempt(async () => chainsOfIptables(await runTool({ program, args: [], ...call })));
    if ('value' in saved && saved.value.chains.has('FW_FORWARD')) return saved;
    readings.push(saved);
  }
  const listed = await attempt(async () =>
    chainsOfNft(await runTool({ program: 'nft', args: ['--json', 'list', 'ruleset'], ...call })),
  );
  const all = [listed, ...readings];
  const read = all.find((one) => 'value' in one);
  return read ?? { reason: all.map((one) => ('reason' in one ? one.reason : '')).join(' ') };
}

/** `:CHAIN POLICY [0:0]`, then `-A CHAIN -s fc00::/7 … -j TARGET`. */
function chainsOfIptables(output: string): ChainRules {
  const chains = new Set([...output.matchAll(/^:(\S+) /gm)].map(([, name = '']) => name));
  const [, ulaTarget] = /^-A FW_FORWARD -s fc00::\/7\b.* -[jg] (\S+)/m.exec(output) ?? [];
  return { chains, ulaTarget };
}

function chainsOfNft(output: string): ChainRules {
  const chains = new Set<string>();
  let ulaTarget: string | undefined;
  const { nftables }: { nftables?: unknown } = output.trim() === '' ? {} : JSON.parse(output);
  for (const entry of Array.isArray(nftables) ? nftables.filter(isObject) : []) {
    if (isObject(entry.chain)) chains.add(String(entry.chain.name));
    const { rule } = entry;
    if (!isObject(rule) || rule.chain !== 'FW_FORWARD' || !Array.isArray(rule.expr)) continue;
    const text = JSON.stringify(rule.expr);
    const [, target] = /"(?:jump|goto)":\{"target":"([^"]+)"/.exec(text) ?? [];
    if (text.includes('"field":"saddr"') && text.includes('{"addr":"fc00::","len":7}')) ulaTarget ??= target;
  }
  return { chains, ulaTarget };
}

/** The text of every file of a folder with that ending, by name. */
export function filesOf(folder: string, ending: string): Promise<Reading<ReadonlyMap<string, string>>> {
  return attempt(async () => {
    const names = (await readdir(folder)).filter((name) => name.endsWith(ending) && !name.startsWith('.'));
    const texts = names.map(
      async (name): Promise<[string, string]> => [name, await readFile(`${folder}/${name}`, 'utf8')],
    );
    return new Map(await Promise.all(texts));
  });
}

export interface RunningProcess {
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly since: number;
  /** Its command line, or a file that this names, mentions the folder. */
  readonly readsFolder: boolean;
}

/** The dnsmasq that reads a folder, else any one; undefined when none runs. */
export function dnsmasqOf(folder: string): Promise<Reading<RunningProcess | undefined>> {
  return attempt(async () => {
    const uptimeS = Number.parseFloat(await readFile('/proc/uptime', 'utf8'));
    const bootedAt = Date.now() - uptimeS * 1_000;
    const found: RunningProcess[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      if (!stat.includes(' (dnsmasq) ')) continue;
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
      const since = bootedAt + (ticks / TICKS_PER_S) * 1_000;
      found.push({ pid: Number(pid), since, readsFolder: await mentions(command, folder) });
    }
    return found.find(({ readsFolder }) => readsFolder) ?? found[0];
  });
}

/** USER_HZ, which Linux keeps at 100 for programs. */
const TICKS_PER_S = 100;

async function mentions(command: string, folder: string): Promise<boolean> {
  if (command.includes(folder)) return true;
  const files = [...command.matchAll(/(?:--conf-file=|-C\0?)([^\0]+)/g)].map(([, file = '']) => file);
  for (const file of files) if ((await readFile(file, 'utf8').catch(() => '')).includes(folder)) return true;
  return false;
}

async function attempt<T>(work: () => Promise<T>): Promise<Reading<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (isCoded(error)) return { reason: error.what };
    if (error instanceof Error) return { reason: error.message };
    throw error;
  }
}
