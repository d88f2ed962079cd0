import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { canonicalJson } from '../../core/kernel/canonical-json.ts';
import { heartbeatDefaults } from '../../machines/reconciler/heartbeat.ts';
import { type LegSettings, legDefaults, REPORT_MS } from '../../machines/reconciler/leg-shapes.ts';
import { reapplyDefaults } from '../../machines/reconciler/reapply.ts';
import { keep, refuseFields } from './keep-option.ts';
import { isNeverTouched, normaliseCidr } from './legs.ts';

/** Ranges in which a leg may have a static address; loopback, link-local and multicast are refused. */
const STATIC_RANGES = ['uniqueLocal', 'unicast'];

const address = z.string().transform((text, context) => {
  if (!ipaddr.IPv6.isValidCIDR(text)) {
    context.addIssue({
      code: 'custom',
      message: 'it must be an IPv6 address with its prefix length, e.g. fd00::1/64',
    });
    return z.NEVER;
  }
  const range = ipaddr.IPv6.parseCIDR(text)[0].range();
  if (!STATIC_RANGES.includes(range)) {
    context.addIssue({
      code: 'custom',
      message: `it must be a unique local or global address, this one is ${range}`,
    });
    return z.NEVER;
  }
  return normaliseCidr(text);
});

const leg = z.strictObject({
  /** The interface's name in the router's config; the app cannot change it. */
  intf: z.string().regex(/^[A-Za-z][\w.-]{0,14}$/, 'it must be the name of an interface, e.g. eth1.20'),
  /** For people; the interface's name unless set. */
  label: z.string().min(1).optional(),
  address,
});

const legs = z.array(leg).min(1);

/** The legs of `example-network-config.json`. */
export const exampleLegs: z.output<typeof legs> = [
  { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' },
  { intf: 'eth1.20', label: 'IoT', address: 'fd5e:21aa:90c4:20::1/64' },
  { intf: 'eth1.40', label: 'Lab', address: 'fd5e:21aa:90c4:40::1/64' },
  { intf: 'eth1.50', label: 'Core', address: 'fd5e:21aa:90c4:50::1/64' },
  { intf: 'eth1.70', label: 'MainWireless', address: 'fd5e:21aa:90c4:70::1/64' },
];

const ms = (least: number, unless: number) => z.int().min(least).max(86_400_000).default(unless);

export const reconcilerOptions = z
  .strictObject({
    /** The legs with their static addresses; of the embedded router those of the example config unless set. */
    legs: legs.optional(),
    /** The same, under the name of the role's setting. */
    router_ula_reconciler_addresses: legs.optional(),
    /** Further fields of the config that are held to a value, e.g. the DHCPv6 name servers of a leg. */
    keep: keep.default([]),
    /** The legs may be written to a router elsewhere without `holdfast router adopt`: for configuration management. */
    adopted: z.boolean().default(false),
    /** Paths whose loss in a save of others raises an alert; `*` stands for one key. A held leg's address is none of them. */
    droppedAlerts: z
      .array(z.string().min(1))
      .default(['interface.*.*.ipv6', 'interface.*.*.dhcp6', 'dhcp6', 'routing']),
    /** Interfaces that are refused in the list, besides those named Guest or Telework. */
    never: z.array(z.string()).default(['eth1.30', 'eth1.60']),
    /** Quiet time after an event before the config is read. */
    settleMs: ms(0, legDefaults.settleMs),
    /** From a first reading that found nothing missing to the second. */
    secondLookMs: ms(1, legDefaults.secondLookMs),
    /** Base of the back-off after a lost race; doubled with each one, and jittered. */
    retryMs: ms(1, legDefaults.retryMs),
    /** Lost races in a row after which a person is alerted. */
    maxTries: z.int().min(1).max(100).default(legDefaults.maxTries),
    /** Between two tries while a transaction is pending. */
    waitMs: ms(1, legDefaults.waitMs),
    /** Base of the back-off while the router cannot be read or does not take the write; jittered. */
    backOffMs: ms(1, legDefaults.backOffMs),
    /** Upper limit of that back-off. */
    backOffLimitMs: ms(1, legDefaults.backOffLimitMs),
    /** How long the router may refuse the address before a person is alerted. */
    alertAfterMs: ms(1, legDefaults.alertAfterMs),
    /** How long a configured address may be missing on the link. */
    linkSettleMs: ms(1, legDefaults.linkSettleMs),
    /**
     * What is done about an address that is configured and not on the link: a person is alerted, or the router applies its
     * current config again, too.
     */
    remedy: z.enum(['alert', 'reapply']).default(legDefaults.remedy),
    /** Between two such reapplies, over all legs: each takes every network down for a moment. */
    reapplyEveryMs: ms(100, reapplyDefaults.everyMs),
    /** Between two readings when nothing happens. */
    resyncMs: ms(100, legDefaults.resyncMs),
    /** Requests of legs within this time share one read, or one post. */
    batchMs: z.int().min(0).max(1_000).default(5),
    /** The push monitor that gets a beat after events, where a plugin sends to one. */
    pushMonitor: z
      .string()
      .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/)
      .default('router-ula'),
    /** Between two beats when nothing happens. */
    pushIdleMs: ms(1_000, heartbeatDefaults.idleMs),
  })
  .superRefine((options, context) => {
    const names = ['legs', 'router_ula_reconciler_addresses'] as const;
    const areRead = context.issues.length === 0;
    const given = names.filter((name) => options[name] !== undefined);
    const refuse = (path: PropertyKey[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    if (given.length > 1) refuse([names[1]], 'it means the same as legs: give only one of the two');
    for (const name of given) {
      const seen = { intf: new Set<string>(), address: new Set<string>() };
      for (const [index, { intf, label, address }] of (options[name] ?? []).entries()) {
        if (options.never.includes(intf)) {
          refuse(
            [name, index, 'intf'],
            `it must not be ${intf}: that interface is never touched (option never)`,
          );
        }
        if (isNeverTouched(label ?? intf)) {
          refuse([name, index, 'label'], `it must not be ${label ?? intf}: that network is never touched`);
        }
        if (seen.intf.has(intf)) refuse([name, index, 'intf'], `${intf} is listed twice`);
        if (seen.address.has(address)) refuse([name, index, 'address'], `${address} is listed twice`);
        seen.intf.add(intf);
        seen.address.add(address);
      }
    }
    const legs = (options.legs ?? options.router_ula_reconciler_addresses ?? exampleLegs).map(
      ({ intf }) => intf,
    );
    // Fields that were refused already are not in the form that the other rules expect.
    if (areRead) refuseFields(options.keep, options.never, legs, refuse);
  });

/**
 * The settings of each listed leg and each kept field, from the plugin's options.
 *
 * @param place where the router is, when it is elsewhere: then the legs of the example config are not those of its network
 */
export function legSettings(
  options: z.output<typeof reconcilerOptions>,
  place?: string,
): readonly LegSettings[] {
  const { settleMs, secondLookMs, retryMs, maxTries, waitMs, resyncMs } = options;
  const { backOffMs, backOffLimitMs, alertAfterMs, linkSettleMs, remedy } = options;
  const intervals = {
    ...{ settleMs, secondLookMs, retryMs, maxTries, waitMs, resyncMs },
    ...{ backOffMs, backOffLimitMs, alertAfterMs, linkSettleMs, remedy },
    // Only where nothing looks at it any more does the machine itself read a whole leg.
    wholeMs: REPORT_MS + 2 * resyncMs,
  };
  const listed =
    options.legs ?? options.router_ula_reconciler_addresses ?? (place === undefined ? exampleLegs : []);
  const fields = options.keep.map(({ path, value, match, label }) => ({
    ...{ intf: path.join('.'), label, address: canonicalJson(value), keep: { path, value, match } },
    ...intervals,
  }));
  return [
    ...listed.map(({ intf, label = intf, address }) => ({ intf, label, address, ...intervals })),
    ...fields,
  ];
}
