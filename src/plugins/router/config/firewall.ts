import ipaddr from 'ipaddr.js';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { holderOf, type Network } from './networks.ts';

/** The chains of the router's packet filter, under the names that other tools expect. */
export type Chain = 'FW_FORWARD' | 'FW_ULA_LOCAL_ONLY' | 'FW_ACCEPT_DEFAULT';

export interface Step {
  readonly chain: Chain;
  readonly why: string;
}

/** A prefix that the set of its network does not hold. */
export interface MissingSet {
  readonly side: 'from' | 'to';
  readonly prefix: string;
  /** The set that lacks it. Several when no network contains the prefix, because it may then be behind any of them. */
  readonly sets: readonly { readonly name: string; readonly intf: string; readonly label: string }[];
}

export interface Explanation {
  /**
   * - `returned`: the ULA chain returns it, because a WAN is on one side; per-network policy decides.
   * - `policy`: per-network policy decides.
   * - `bypassed`: accepted before per-network policy is consulted.
   * - `not forwarded`: source and destination are on one network, so no chain is passed.
   */
  readonly verdict: 'returned' | 'policy' | 'bypassed' | 'not forwarded';
  /** Who accepts it, in words. */
  readonly accepts: string;
  readonly steps: readonly Step[];
  readonly missing: readonly MissingSet[];
}

/** What the address sets hold, by name. */
export type FilledSets = ReadonlyMap<string, readonly string[]>;

interface Side {
  readonly which: 'from' | 'to';
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly network?: Network;
  /** The network's own prefix; if no network contains the address, its /64 (for IPv4 the address itself). */
  readonly prefix: string;
  readonly wan: boolean;
}

const ULA = ipaddr.IPv6.parseCIDR('fc00::/7');

/**
 * Which chain accepts a packet from one address to another, and why (R22).
 *
 * @param from an address; `fd00::5%eth1.30` says behind which network it is
 * @param sets what the address sets hold now, which follows the config within a minute
 * @throws HF_CLI_USAGE one of them is no address, or they are of two families
 */
export function explainFlow(
  networks: readonly Network[],
  sets: FilledSets,
  from: string,
  to: string,
): Explanation {
  const [source, target] = [sideOf(networks, 'from', from), sideOf(networks, 'to', to)];
  if (source.address.kind() !== target.address.kind())
    usage('--from and --to must be of one address family.');
  if (source.network && source.network === target.network) {
    return {
      verdict: 'not forwarded',
      accepts: `no chain sees it: both are on ${named(source)}, and the packet stays there`,
      steps: [],
      missing: [],
    };
  }
  const policy = `per-network policy of ${named(source)} to ${named(target)} decides${isolation(source, target)}`;
  const missing = [source, target].flatMap((side) => missingSet(networks, sets, side));
  if (!isUla(source.address)) {
    const steps: Step[] = [
      {
        chain: 'FW_FORWARD',
        why: `the source is not in fc00::/7, so FW_ULA_LOCAL_ONLY is not consulted; ${policy}`,
      },
    ];
    return { verdict: 'policy', accepts: 'FW_FORWARD, by per-network policy', steps, missing };
  }
  const sent: Step = { chain: 'FW_FORWARD', why: 'the source is in fc00::/7: on to FW_ULA_LOCAL_ONLY' };
  if (source.wan || target.wan) {
    const way = source.wan ? `in by the WAN ${named(source)}` : `out by the WAN ${named(target)}`;
    const steps: Step[] = [
      sent,
      { chain: 'FW_ULA_LOCAL_ONLY', why: `${way}: returns` },
      { chain: 'FW_FORWARD', why: `goes on: ${policy}` },
    ];
    return { verdict: 'returned', accepts: 'FW_FORWARD, by per-network policy', steps, missing };
  }
  const local: Step = {
    chain: 'FW_ULA_LOCAL_ONLY',
    why: 'neither in nor out by a WAN: no return, on to FW_ACCEPT_DEFAULT',
  };
  if (missing.length === 0) {
    const why = `both prefixes are in their address sets, so ${policy}; what it lets pass is accepted here`;
    const steps: Step[] = [sent, local, { chain: 'FW_ACCEPT_DEFAULT', why }];
    return { verdict: 'policy', accepts: 'FW_ACCEPT_DEFAULT, after per-network policy', steps, missing };
  }
  const why = `accepts at once, and the rest of FW_FORWARD is never reached: ${missing.map(missingText).join('; ')}`;
  const steps: Step[] = [sent, local, { chain: 'FW_ACCEPT_DEFAULT', why }];
  return {
    verdict: 'bypassed',
    accepts: 'FW_ACCEPT_DEFAULT, with per-network policy bypassed',
    steps,
    missing,
  };
}

/** Why a set counts as missing, and which. */
export function missingText({ prefix, sets }: MissingSet): string {
  const names = sets.map(
    ({ name, label, intf }) => `${name} (${label === intf ? intf : `${label}, ${intf}`})`,
  );
  const [only] = names;
  if (names.length === 1) return `${prefix} is not in the set ${only}`;
  if (names.length === 0) return `${prefix} is in no set`;
  return `no leg holds ${prefix}, so it is in no set; behind which leg it lies says which one lacks it: ${names.join(', ')}`;
}

function sideOf(networks: readonly Network[], which: 'from' | 'to', text: string): Side {
  const [bare = '', zone] = text.split('%');
  if (!ipaddr.isValid(bare) || (!bare.includes(':') && !ipaddr.IPv4.isValidFourPartDecimal(bare)))
    usage(`--${which} takes an address, not ${text}.`);
  const address = ipaddr.parse(bare);
  const holder = holderOf(networks, address);
  const zoned = networks.find(({ intf, label }) => zone !== undefined && (intf === zone || label === zone));
  if (zone !== undefined && !zoned) usage(`--${which}: there is no interface ${zone}.`);
  const network = zoned ?? holder?.network;
  const prefix = holder && holder.network === network ? holder.prefix : ownPrefix(address);
  // An address that no network holds, and that is no ULA, lies beyond the WAN.
  const wan = network?.wan ?? !isUla(address);
  return { which, address, ...(network && { network }), prefix, wan };
}

/** Whether the set of a side's network lacks its prefix. Only IPv6 has such sets, and a WAN has none. */
function missingSet(networks: readonly Network[], sets: FilledSets, side: Side): MissingSet[] {
  if (side.wan || side.address.kind() === 'ipv4') return [];
  const { which, network, prefix } = side;
  if (network?.set !== undefined) {
    const { set, intf, label } = network;
    const isHeld = (sets.get(set) ?? []).some((prefix) => side.address.match(ipaddr.parseCIDR(prefix)));
    return isHeld ? [] : [{ side: which, prefix, sets: [{ name: set, intf, label }] }];
  }
  if (network) return [{ side: which, prefix, sets: [] }];
  // No network contains the address. A network without any ULA is the most likely one to lack this prefix.
  const legs = networks.flatMap(({ set, intf, label }) => (set ? [{ name: set, intf, label }] : []));
  const bare = legs.filter(
    ({ name }) => !(sets.get(name) ?? []).some((prefix) => isUla(ipaddr.parseCIDR(prefix)[0])),
  );
  return [{ side: which, prefix, sets: bare.length > 0 ? bare : legs }];
}

function isUla(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return address.kind() === 'ipv6' && address.match(ULA);
}

function ownPrefix(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  if (address.kind() === 'ipv4') return `${address}/32`;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`)}/64`;
}

function named({ network, wan }: Side): string {
  if (!network) return wan ? 'the internet' : 'no known network';
  return network.label === network.intf ? network.intf : `${network.label} (${network.intf})`;
}

function isolation(...sides: readonly Side[]): string {
  const isolated = sides.filter(({ network }) => network?.isolated === true).map(named);
  return isolated.length > 0 ? ` (${isolated.join(' and ')} isolated)` : '';
}

function usage(reason: string): never {
  throw new HostError('HF_CLI_USAGE', { reason, command: 'router explain' });
}
