/** The lines of `ip -oneline monitor label`, as far as the router follows them. */

export type KernelNotice = KernelChange | ReceivedPrefix;

/** One change that the kernel announces. */
export type KernelChange =
  | { readonly kind: 'link'; readonly intf: string; readonly running: boolean }
  /** A global-scope IPv6 address, with its prefix length. */
  | {
      readonly kind: 'address';
      readonly intf: string;
      readonly address: string;
      readonly removed: boolean;
    }
  | { readonly kind: 'default route'; readonly intf: string; readonly removed: boolean }
  /** A prefix that a DHCPv6 client was delegated: it drops what no leg of the prefix takes (RFC 7084, WPD-5). */
  | { readonly kind: 'delegation'; readonly prefix: string; readonly removed: boolean };

/** A prefix of a router advertisement that the kernel accepted on an interface. */
export interface ReceivedPrefix {
  readonly kind: 'advertisement';
  readonly intf: string;
  readonly prefix: string;
  /** Seconds; Infinity for a prefix without an end. */
  readonly validS: number;
}

const LINK = /^\[LINK\](Deleted )?\d+: ([^\s:@]+)[^:]*: <([^>]*)>/;
const ADDRESS = /^\[ADDR\](Deleted )?\d+: (\S+) +inet6 (\S+) scope global/;
const ROUTE = /^\[ROUTE\](Deleted )?(?:(unreachable|blackhole|prohibit) )?(\S+) (.*)$/;
// iproute2 prints no space between prefix and `dev`.
const PREFIX =
  /^\[PREFIX\](Deleted )?prefix ([0-9a-f:]+\/\d{1,3}) ?dev (\S+) .*?valid (\d+|infinity|forever)/;

/** @returns undefined for a line that says nothing that the router follows */
export function parseMonitorLine(line: string): KernelNotice | undefined {
  if (line.startsWith('[LINK]')) return linkIn(line);
  if (line.startsWith('[ADDR]')) return addressIn(line);
  if (line.startsWith('[ROUTE]')) return routeIn(line);
  if (line.startsWith('[PREFIX]')) return prefixIn(line);
  return undefined;
}

function linkIn(line: string): KernelNotice | undefined {
  const [, deleted, intf, flags = ''] = LINK.exec(line) ?? [];
  if (intf === undefined) return undefined;
  return { kind: 'link', intf, running: deleted === undefined && isRunning(flags.split(',')) };
}

/** Whether a device is switched on and has a carrier. */
export function isRunning(flags: readonly string[]): boolean {
  return flags.includes('UP') && flags.includes('LOWER_UP');
}

function addressIn(line: string): KernelNotice | undefined {
  const [, deleted, intf, address] = ADDRESS.exec(line) ?? [];
  if (intf === undefined || address === undefined) return undefined;
  return { kind: 'address', intf, address, removed: deleted !== undefined };
}

function routeIn(line: string): KernelNotice | undefined {
  const [, deleted, type, destination = '', rest = ''] = ROUTE.exec(line) ?? [];
  if (type !== undefined) {
    if (!isDelegatedPrefix(destination)) return undefined;
    return { kind: 'delegation', prefix: destination, removed: deleted !== undefined };
  }
  const [, intf] = /\bdev (\S+)/.exec(rest) ?? [];
  if (destination !== 'default' || intf === undefined) return undefined;
  return { kind: 'default route', intf, removed: deleted !== undefined };
}

/** A prefix of the global unicast range (RFC 4291) that has room for a leg's /64. */
export function isDelegatedPrefix(destination: string): boolean {
  const [, bits] = /^[23][0-9a-f]{3}:[0-9a-f:]*\/(\d{1,3})$/.exec(destination) ?? [];
  return bits !== undefined && Number(bits) >= 16 && Number(bits) <= 64;
}

function prefixIn(line: string): KernelNotice | undefined {
  const [, deleted, prefix, intf, valid] = PREFIX.exec(line) ?? [];
  if (deleted !== undefined || prefix === undefined || intf === undefined) return undefined;
  const validS = /^\d+$/.test(valid ?? '') ? Number(valid) : Number.POSITIVE_INFINITY;
  return { kind: 'advertisement', intf, prefix, validS };
}
