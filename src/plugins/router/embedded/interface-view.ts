/** What the read routes of a router's daemon show of interfaces and WANs, in its shape: 24 fields of state for each. */
import { isIPv4, isIPv6 } from 'node:net';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import {
  fieldsOf,
  type InterfaceEntry,
  interfacesOf,
  ipv6Enabled,
  stringsOf,
} from '../config/network-config.ts';
import { viaInterfaces } from '../config/reapply.ts';
import { type InterfaceState, type LinkFacts, NO_FACTS } from './kernel/driver.ts';
import type { Wans } from './kernel/steps.ts';

/** What is known of the router besides its config. */
export interface Observed {
  /** By interface; none of a device that the kernel does not know. */
  readonly states: ReadonlyMap<string, InterfaceState>;
  readonly wans: Wans;
}

/** The table that the default routes stand in: the main one. A daemon has a table of its own for each WAN. */
const MAIN_TABLE = 254;

interface WanConnection {
  readonly ready: boolean;
  readonly pendingTest: boolean;
  readonly active: boolean;
  readonly inUse: boolean;
}

/** The state of one interface; null where it has no such thing, or nobody here knows it. */
export interface DaemonState extends LinkFacts {
  readonly ip4: string | null;
  readonly ip4s: readonly string[] | null;
  readonly routableSubnets: null;
  readonly ip6: readonly string[] | null;
  readonly gateway: string | null;
  readonly gateway6: string | null;
  readonly dns: readonly string[];
  readonly origDns: readonly string[];
  readonly dns6: readonly string[];
  readonly origDns6: readonly string[];
  readonly pds: readonly string[] | null;
  readonly rtid: number | null;
  readonly wanConnState: WanConnection | null;
  readonly wanTestResult: Readonly<Record<string, never>> | null;
  readonly present: boolean;
  readonly subIntfs: readonly string[] | null;
}

/** An interface with its entry in the config, secrets included: it is served as `/v1/config/active` serves them. */
export interface DaemonInterface {
  readonly config: unknown;
  readonly state: DaemonState;
}

/** Interfaces by name, in the order of the config. */
export function interfaceViews(
  config: NetworkConfig,
  observed: Observed,
  role?: 'wan' | 'lan',
): Record<string, DaemonInterface> {
  const shown = interfacesOf(config).filter((entry) => role === undefined || roleOf(entry) === role);
  return Object.fromEntries(shown.map((entry) => [entry.name, interfaceView(config, entry, observed)]));
}

export function interfaceView(
  config: NetworkConfig,
  entry: InterfaceEntry,
  observed: Observed,
): DaemonInterface {
  const { name, kind, config: fields } = entry;
  const found = observed.states.get(name);
  const { mac, mtu, carrier, duplex, speed, operstate, txBytes, rxBytes } = found?.link ?? NO_FACTS;
  const isOn = fields.enabled !== false;
  const isWan = roleOf(entry) === 'wan';
  const fixed = [...new Set([...stringsOf(fields.ipv4s), ...stringsOf(fields.ipv4)])];
  const ip4s = !isOn ? [] : fixed.length > 0 ? fixed : (found?.ip4 ?? []);
  const servers = isWan ? [...stringsOf(fields.nameservers), ...stringsOf(fields.dns6Servers)] : [];
  const gatewayOf = (family: 4 | 6) =>
    isWan
      ? (found?.routes.find((one) => one.family === family && one.destination === 'default')?.via ?? '')
      : null;
  const prefix = isWan ? observed.wans.get(name)?.prefix : undefined;
  const lower = stringsOf(fields.intf);
  return {
    config: fields,
    state: {
      mac,
      mtu,
      carrier,
      duplex,
      speed,
      operstate,
      txBytes,
      rxBytes,
      ip4: ip4s[0] ?? null,
      ip4s: ip4s.length > 0 ? ip4s : null,
      routableSubnets: null,
      ip6: isOn && found ? found.ip6 : null,
      gateway: gatewayOf(4),
      gateway6: gatewayOf(6),
      dns: servers.filter(isIPv4),
      origDns: [],
      dns6: ipv6Enabled(fields) ? servers.filter(isIPv6) : [],
      origDns6: [],
      pds: prefix === undefined ? null : [prefix],
      rtid: isWan ? MAIN_TABLE : null,
      wanConnState: isWan ? connectionOf(config, entry, observed) : null,
      wanTestResult: isWan ? {} : null,
      present: found !== undefined,
      subIntfs: STACKED.includes(kind) ? lower : null,
    },
  };
}

/**
 * Whether the WANs are connected: each that is on, has a carrier and did not go down. Nothing is sent to find out, so that
 * `ping` and `dns` are null.
 *
 * @returns null without a part `routing.global`
 */
export function wanConnectivity(config: NetworkConfig, observed: Observed): object | null {
  if (fieldsOf(config.routing).global === undefined) return null;
  const wans = interfacesOf(config).filter((entry) => roleOf(entry) === 'wan');
  const results = wans.map((entry) => {
    const wanConnState = connectionOf(config, entry, observed);
    const carrier = observed.states.get(entry.name)?.link.carrier === '1';
    const failures = carrier ? [] : [{ type: 'carrier' }];
    const result = { active: wanConnState.ready, carrier, ping: null, dns: null, failures, wanConnState };
    return [entry.name, result] as const;
  });
  return { connected: results.some(([, { active }]) => active), wans: Object.fromEntries(results) };
}

function connectionOf(config: NetworkConfig, { name, config: fields }: InterfaceEntry, observed: Observed) {
  const hasCarrier = observed.states.get(name)?.link.carrier === '1';
  const ready = fields.enabled !== false && observed.wans.get(name)?.up !== false && hasCarrier;
  const active = ready && viaInterfaces(fieldsOf(config.routing).global).includes(name);
  return { ready, pendingTest: false, active, inUse: active } satisfies WanConnection;
}

const STACKED: readonly string[] = ['vlan', 'bridge', 'bond'];

/** The type that the app gives an interface decides; without one a gateway or a DHCP client makes it a WAN. */
function roleOf({ kind, config: fields }: InterfaceEntry): 'wan' | 'lan' | undefined {
  const { type } = fieldsOf(fields.meta);
  if (type === 'wan' || kind === 'pppoe') return 'wan';
  if (type === 'lan') return 'lan';
  const hasIpv4 = stringsOf(fields.ipv4).length + stringsOf(fields.ipv4s).length > 0;
  const client = fields.dhcp !== undefined && fields.dhcp !== false;
  if (client || (hasIpv4 && fields.gateway !== undefined)) return 'wan';
  return hasIpv4 ? 'lan' : undefined;
}
