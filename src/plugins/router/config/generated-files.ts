/**
 * Computes the files of the router's DHCP and DNS daemons from the config alone (R19).
 * Outputs only: nothing reads them back. Every value is checked before it becomes part of a line, so that no config can
 * write a line of its own; no secret is among them.
 */

import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { RouterError } from '../errors.ts';
import { fieldsOf, type InterfaceEntry, interfacesOf, isWan, stringsOf } from './network-config.ts';
import type { ReapplyPlan } from './reapply.ts';
import { isDeviceName } from './validate.ts';

/** Path below the folder of generated files → text. */
export type GeneratedFiles = ReadonlyMap<string, string>;

/** Seconds; 86400 unless set. */
const LEASE = 86_400;
/**
 * The lease times that dnsmasq accepts: it reads a number up to 128, or one that overflows below zero, as a prefix
 * length.
 */
const SHORTEST_LEASE = 129;
const LONGEST_LEASE = 0x7fff_ffff;
const RA_INTERVAL = 200;
const RA_LIFETIME = 3_600;
/** The DHCP daemon's word for its own address on the leg. */
const OWN_ADDRESS = '[::]';
const DELEGATED_SIZE = 64;

/**
 * @returns every generated file of a config
 * @throws HF_ROUTER_GENERATE a value that must stand in a line can't
 */
export function generateFiles(config: NetworkConfig): GeneratedFiles {
  const files = new Map<string, string>();
  const interfaces = interfacesOf(config);
  for (const entry of interfaces) {
    const server = serverOf(config, entry);
    if (server) files.set(v6File(entry.name), v6Lines(entry.name, server));
    const client = clientOf(entry);
    if (client) files.set(`dhcp6/${nameIn('dhcp6', entry.name)}.conf`, clientLines(entry.name, client));
  }
  for (const [name, value] of Object.entries(fieldsOf(config.dns))) {
    files.set(`dns/${nameIn('dns', name)}.conf`, dnsLines(name, value));
  }
  return files;
}

/** Names of the legs on which the router advertises, in the order of the config. */
export function advertisingLegs(config: NetworkConfig): string[] {
  return interfacesOf(config)
    .filter((entry) => serverOf(config, entry) !== undefined)
    .map(({ name }) => name);
}

/** The file by which the DHCP daemon learns what to advertise on a leg. */
export function v6File(intf: string): string {
  return `dhcp/conf/${nameIn('dhcp6', intf)}_v6.conf`;
}

/**
 * The legs whose `<intf>_v6.conf` a reapply rewrites: it reapplies the leg or its DHCPv6 server, or takes them away.
 */
export function rewrittenLegs(plan: ReapplyPlan, before: NetworkConfig, after: NetworkConfig): string[] {
  const touched = new Set(
    [...plan.removed, ...plan.applied]
      .filter(({ plugin }) => plugin === 'interface' || plugin === 'dhcp6')
      .map(({ name }) => name),
  );
  const legs = new Set([...advertisingLegs(before), ...advertisingLegs(after)]);
  return [...legs].filter((leg) => touched.has(leg));
}

/** The legs whose files for the DHCP daemon are among these generated paths. */
export function legsOfFiles(paths: readonly string[]): string[] {
  return paths.flatMap((path) => /^dhcp\/conf\/(.+)_v6\.conf$/.exec(path)?.[1] ?? []);
}

type Fields = Readonly<Record<string, unknown>>;

/** The DHCPv6 server section of a LAN leg; on a WAN `dhcp6` is a client and no server. */
function serverOf(config: NetworkConfig, { name, config: leg }: InterfaceEntry): Fields | undefined {
  if (isWan(leg)) return undefined;
  const top = fieldsOf(config.dhcp6)[name];
  if (top === undefined && leg.dhcp6 === undefined) return undefined;
  return { ...fieldsOf(leg.dhcp6), ...fieldsOf(top) };
}

function clientOf({ config }: InterfaceEntry): Fields | undefined {
  return isWan(config) && config.dhcp6 !== undefined ? fieldsOf(config.dhcp6) : undefined;
}

function v6Lines(intf: string, { nameservers, lease, raInterval, raLifetime }: Fields): string {
  const servers = stringsOf(nameservers).map((server) => `[${ipv6In(`dhcp6.${intf}.nameservers`, server)}]`);
  return lines(
    `dhcp-option=tag:${intf},option6:dns-server,${servers.join(',') || OWN_ADDRESS}`,
    `dhcp-range=tag:${intf},::,constructor:${intf},slaac,${leaseOf(lease)}`,
    'enable-ra',
    `ra-param=${intf},${within(raInterval, 4, 1_800) ?? RA_INTERVAL},${within(raLifetime, 0, 9_000) ?? RA_LIFETIME}`,
  );
}

/**
 * In the format of dhcpcd: a prefix for each delegation, assigned to no interface, because the router itself assigns
 * it.
 */
function clientLines(wan: string, { pdSize, numOfPDs }: Fields): string {
  const size = within(pdSize, 1, DELEGATED_SIZE) ?? DELEGATED_SIZE;
  const count = within(numOfPDs, 1, 64) ?? 1;
  const prefixes = Array.from({ length: count }, (_, index) => `  ia_pd ${index + 1}/::/${size} -`);
  return lines('duid', 'noipv4', 'noipv6rs', `interface ${wan}`, '  ipv6rs', '  ia_na', ...prefixes);
}

/** The nameservers for queries of a leg; if it names none, those that the WAN was given. */
function dnsLines(name: string, value: unknown): string {
  const { nameservers, dns6Servers } = fieldsOf(value);
  const path = `dns.${name}`;
  return lines(
    ...stringsOf(nameservers).map((server) => `server=${ipIn(`${path}.nameservers`, server)}`),
    ...stringsOf(dns6Servers).map((server) => `server=${ipv6In(`${path}.dns6Servers`, server)}`),
  );
}

function leaseOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return LEASE;
  return Math.min(LONGEST_LEASE, Math.max(SHORTEST_LEASE, Math.round(value)));
}

function within(value: unknown, least: number, most: number): number | undefined {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most
    ? Number(value)
    : undefined;
}

function nameIn(part: string, name: string): string {
  return isDeviceName(name) ? name : refuse(part, 'a name in it is not one a device can have');
}

function ipv6In(path: string, text: string): string {
  return isPlain(text) && ipaddr.IPv6.isValid(text) ? text : refuse(path, 'it is not an IPv6 address');
}

function ipIn(path: string, text: string): string {
  const valid = ipaddr.IPv6.isValid(text) || ipaddr.IPv4.isValidFourPartDecimal(text);
  return isPlain(text) && valid ? text : refuse(path, 'it is not an IP address');
}

/** Without zone, and without characters that have a meaning in a generated line. */
function isPlain(text: string): boolean {
  return /^[0-9a-fA-F:.]+$/.test(text);
}

function refuse(path: string, reason: string): never {
  throw new RouterError('HF_ROUTER_GENERATE', { what: path, reason });
}

function lines(...text: string[]): string {
  return text.map((line) => `${line}\n`).join('');
}
