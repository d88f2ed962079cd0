import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { isObject, nestedDeeper } from '../../../core/kernel/json.ts';
import { RouterError } from '../errors.ts';
import { isLabel, misfits } from './references.ts';

/**
 * Names that the kernel accepts for a device, without characters that have a meaning in a generated line, a path or a
 * command.
 */
const DEVICE_NAME_PATTERN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;

/** Whether a name is safe in a generated line, in a file's name and in a command to the kernel. */
export function isDeviceName(name: string): boolean {
  return DEVICE_NAME_PATTERN.test(name);
}

/** Whether this is the name of a device that may be configured; the loopback may not. */
export function isConfigurable(name: string): boolean {
  return isDeviceName(name) && name !== 'lo';
}

/** Deeper than any config. The limit prevents a stack overflow on a document that is nested too deep. */
export const DEEPEST = 64;
const LONGEST_PATH = 200;

type Context = z.core.$RefinementCtx;

/** `ipv6` may be one address or a list of addresses; the issue names the wrong item. */
function addresses(valid: (text: string) => boolean, wanted: string): z.ZodType {
  return z.unknown().superRefine((value: unknown, context: Context) => {
    const many = Array.isArray(value);
    for (const [index, item] of (many ? value : [value]).entries()) {
      if (typeof item === 'string' && valid(item)) continue;
      context.addIssue({ code: 'custom', message: `${wanted} is wanted`, path: many ? [index] : [] });
    }
  });
}

const isIpv4 = (text: string): boolean => isIPv4(text);
const isIpv6 = (text: string): boolean => isIPv6(text) && !text.includes('%');
const isCidr = (text: string, valid: (address: string) => boolean, longest: number): boolean => {
  const [address = '', bits = '', ...rest] = text.split('/');
  return rest.length === 0 && valid(address) && /^\d{1,3}$/.test(bits) && Number(bits) <= longest;
};
const cidr4 = addresses((text) => isCidr(text, isIpv4, 32), 'an IPv4 address with prefix length').optional();
const cidr6 = addresses((text) => isCidr(text, isIpv6, 128), 'an IPv6 address with prefix length').optional();
const ipv4 = z.string().refine(isIpv4, 'an IPv4 address is wanted').optional();
const ipv6List = addresses(isIpv6, 'an IPv6 address').optional();
const ipList = addresses((text) => isIpv4(text) || isIpv6(text), 'an IP address').optional();
const lease = z.number().positive().optional();
const LABEL = 'a name has at most 64 letters, digits, dots, dashes, underscores, colons and @';
const label = z.string().refine(isLabel, LABEL);
/** A part of the config by interface or by label; `interface` is checked on its own. */
const map = <T extends z.ZodType>(value: T) => z.record(label, value).optional();
/** Parts that are checked by their names only, and may be lists. */
const checkedByName = z
  .unknown()
  .superRefine((value: unknown, context: Context) => {
    for (const name of Object.keys(isObject(value) ? value : {}))
      if (!isLabel(name)) context.addIssue({ code: 'custom', message: LABEL, path: [name] });
  })
  .optional();

const VID = 'the number of a VLAN is 1 to 4094';
/** Apps write it as a number, some as text. */
const vid = z.union(
  [
    z.int().min(1).max(4094),
    z.string().refine((text) => /^\d{1,4}$/.test(text) && +text > 0 && +text < 4095),
  ],
  VID,
);
/** As the daemon checks it: any version, any variant. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const anyObject = z.looseObject({});

const networkInterface = z
  .looseObject({
    enabled: z.boolean().optional(),
    intf: z
      .union([z.string().min(1), z.array(z.string().min(1))], 'an interface name, or several')
      .optional(),
    vid: vid.optional(),
    ipv4: cidr4,
    ipv4s: cidr4,
    ipv6: cidr6,
    ipv6DelegateFrom: z.string().min(1).optional(),
    ipv6PassthroughFrom: z.string().min(1).optional(),
    dhcp6: anyObject.optional(),
    meta: z
      .looseObject({
        name: z.string().optional(),
        type: z.string().optional(),
        uuid: z.union([z.string().regex(UUID), z.literal('')], 'a UUID is wanted').optional(),
      })
      .optional(),
    listenPort: z.int().min(1).max(65_535).optional(),
  })
  .refine((value) => value.ipv6DelegateFrom === undefined || value.ipv6PassthroughFrom === undefined, {
    message: 'ipv6DelegateFrom and ipv6PassthroughFrom exclude each other',
    path: ['ipv6PassthroughFrom'],
  });

/** The kernel can create a VLAN only from its parent device and its number. */
const vlan = networkInterface.safeExtend({
  vid,
  intf: z.string('a VLAN needs the device that it stands on').min(1),
});

const DEVICE_NAME = 'a device has a name of at most 15 letters, digits, dots, dashes and underscores';

/**
 * Checked first: names that are unsafe in a generated file or for the kernel, and a name that is in two maps. Both
 * instances would be the same device, which would disappear as soon as one of them is removed.
 */
const interfaces = z
  .unknown()
  .superRefine((value: unknown, context: Context) => {
    const kinds = new Map<string, string>();
    for (const [kind, entries] of Object.entries(isObject(value) ? value : {})) {
      for (const name of Object.keys(isObject(entries) ? entries : {})) {
        const other = kinds.get(name);
        const message = isConfigurable(name)
          ? other !== undefined && `there is an interface of that name in ${other}, too`
          : DEVICE_NAME;
        if (message) context.addIssue({ code: 'custom', message, path: [kind, name] });
        kinds.set(name, `interface.${kind}`);
      }
    }
  })
  .pipe(
    z
      .looseObject({ vlan: z.record(z.string(), vlan).optional() })
      .catchall(z.record(z.string(), networkInterface)),
  );

const BY_NAME = [
  'sshd',
  'upnp',
  'nat_passthrough',
  'mdns_reflector',
  'igmp_proxy',
  'mroute',
  'icmp',
  'hostapd',
  'docker',
  'apc',
];

const networkConfig = z.looseObject({
  interface: interfaces,
  routing: map(z.looseObject({ default: anyObject.optional() })),
  dns: z
    .record(
      z.string().refine(isDeviceName, DEVICE_NAME),
      z.looseObject({ nameservers: ipList, dns6Servers: ipv6List }),
    )
    .optional(),
  dhcp: map(
    z.looseObject({
      gateway: ipv4,
      subnetMask: ipv4,
      nameservers: ipList,
      range: z.looseObject({ from: ipv4, to: ipv4 }).optional(),
      lease,
    }),
  ),
  dhcp6: map(z.looseObject({ nameservers: ipv6List, lease })),
  nat: map(
    z.looseObject({
      in: z.string().optional(),
      out: z.string().refine(isConfigurable, DEVICE_NAME).optional(),
    }),
  ),
  ...Object.fromEntries(BY_NAME.map((part) => [part, checkedByName])),
});

/**
 * Checks a whole config before it is applied (R36). Unknown fields pass unchecked.
 *
 * @throws HF_ROUTER_STATIC_ROUTE names the path of a static route, which no config can hold (R37)
 * @throws HF_ROUTER_CONFIG_INVALID names the path of the first bad field and how many more there are; never its value
 */
export function validateConfig(config: NetworkConfig): void {
  if (nestedDeeper(config, DEEPEST)) refuse('', `it is nested deeper than ${DEEPEST} levels`);
  const route = staticRouteIn(config);
  if (route) throw new RouterError('HF_ROUTER_STATIC_ROUTE', { path: maskText(route.join('.')) });
  const result = networkConfig.safeParse(config);
  const issues = result.success
    ? misfits(config)
    : result.error.issues.map(({ path, message: reason }) => ({ path, reason }));
  const [first, ...more] = issues;
  if (!first) return;
  const also = more.length > 0 ? ` (and ${more.length} more)` : '';
  refuse(first.path.join('.'), `${first.reason}${also}`);
}

/** The path holds keys as they were posted. */
function refuse(path: string, reason: string): never {
  const shown = maskText(path.slice(0, LONGEST_PATH)).replace(/[^\x20-\x7e]/g, '?');
  throw new RouterError('HF_ROUTER_CONFIG_INVALID', { path: shown || 'the top', reason });
}

/** Names under which routes are kept elsewhere: `static`, `routes`, `staticRoutes`, `static_routes6`, `route4`, … */
const NAME = /^(?:static|(?:static|extra|custom|policy)?routes?[46]?|static[46])$/;
/** Fields that name the destination or the gateway of a route. */
const TO = ['destination', 'dest', 'dst', 'to', 'prefix', 'network', 'cidr', 'subnet', 'target'];
const BY = ['via', 'viaIntf', 'gateway', 'gw', 'nexthop', 'nextHop', 'dev', 'intf', 'interface'];

/**
 * Looks for a static route wherever one might be posted: anywhere in `routing`, in an interface, or at the top level.
 * `routing` may hold the default policy of the WANs and nothing else (R37).
 *
 * @returns its path; undefined when there is none. An empty list or object does not count as a route.
 */
function staticRouteIn(config: NetworkConfig): string[] | undefined {
  const { routing, interface: interfaces } = config;
  return named(config, []) ?? inRouting(routing, ['routing']) ?? inInterfaces(interfaces);
}

function inRouting(value: unknown, path: string[]): string[] | undefined {
  const found = named(value, path);
  if (found) return found;
  if (isRoute(value)) return path;
  for (const [key, item] of entriesOf(value)) {
    // `routing.10.0.0.0/8`: the destination is the key.
    if (isNetwork(key) && !isEmpty(item)) return [...path, key];
    const inside = inRouting(item, [...path, key]);
    if (inside) return inside;
  }
  return undefined;
}

function inInterfaces(interfaces: unknown): string[] | undefined {
  for (const [kind, map] of entriesOf(interfaces)) {
    for (const [name, entry] of entriesOf(map)) {
      const found = named(entry, ['interface', kind, name]);
      if (found) return found;
    }
  }
  return undefined;
}

/** Whether a field has the name of static routes and its value could be one. */
function named(value: unknown, path: string[]): string[] | undefined {
  if (!isObject(value)) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const name = key.toLowerCase().replace(/[^a-z0-9]/g, '');
    if (NAME.test(name) && typeof item === 'object' && !isEmpty(item)) return [...path, key];
  }
  return undefined;
}

function isRoute(value: unknown): boolean {
  if (!isObject(value)) return false;
  const leadsTo = TO.some((field) => isNetwork(value[field]));
  return leadsTo && BY.some((field) => value[field] !== undefined);
}

/** The library finds out by an exception, which costs more than all other checks together. */
function isNetwork(value: unknown): boolean {
  return typeof value === 'string' && value.includes('/') && ipaddr.isValidCIDR(value);
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}
