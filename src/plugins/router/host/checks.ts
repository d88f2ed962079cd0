/** `holdfast doctor router` on the router's own host: what its config implies is held against what the host has (R19 to R22). */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { advertisingLegs, generateFiles } from '../config/generated-files.ts';
import { addressSets } from '../config/networks.ts';
import { addressesOf, chainsOf, dnsmasqOf, filesOf, type HostCall, setsOf } from './own-host.ts';
import { heldPrefixes } from './set-tools.ts';

export interface CheckedHost {
  /** A namespace by its name; this process's own without one. */
  readonly namespace?: string | undefined;
  /** The active config; undefined while there is none. */
  readonly config: (context: CheckContext) => Promise<NetworkConfig | undefined>;
  /** The folder with `<intf>_v6.conf`; undefined when nobody said where it is. */
  readonly confDir: (context: CheckContext) => string | undefined;
  /** The files are ours, so they must be what the config gives to the letter. */
  readonly generatesFiles: boolean;
  /** From a rewrite of a file until the DHCP service must have read it; 45 s unless set. */
  readonly readWithinMs?: number;
  /** Where the packet filter is somebody else's, its chains are looked at, too. */
  readonly hasChains: boolean;
}

type Found = Omit<CheckResult, 'lookedAt'>;

/** The documented 22 s, and as much again for a burst. */
const READ_WITHIN_MS = 45_000;
const CHAINS = ['FW_FORWARD', 'FW_ULA_LOCAL_ONLY', 'FW_ACCEPT_DEFAULT'];

/** The checks of a router whose host is this one. */
export function hostChecks(host: CheckedHost): CheckDefinition[] {
  const check = (
    name: string,
    lookedAt: string,
    look: (config: NetworkConfig, context: CheckContext) => Promise<Found>,
  ): CheckDefinition => ({
    name,
    async run(context) {
      const config = await host.config(context);
      if (!config)
        return { state: 'unknown', lookedAt, found: 'there is no config yet', remedy: 'Start the router.' };
      return { lookedAt, ...(await look(config, context)) };
    },
  });
  const call = ({ signal }: CheckContext): HostCall => ({ namespace: host.namespace, signal });
  return [
    check('router.sets', 'the address sets of the kernel', (config, context) =>
      setsCheck(config, call(context)),
    ),
    ...(host.hasChains
      ? [
          check('router.chains', 'the chains of the packet filter', (_, context) =>
            chainsCheck(call(context)),
          ),
        ]
      : []),
    check('router.v6_files', 'the files of the DHCP service', (config, context) =>
      filesCheck(config, host.confDir(context), host.generatesFiles),
    ),
    check('router.advertisements', 'the DHCP service', (config, context) =>
      serviceCheck(config, host.confDir(context), host.readWithinMs ?? READ_WITHIN_MS),
    ),
  ];
}

const unknown = (found: string, remedy: string): Found => ({ state: 'unknown', found, remedy });

async function setsCheck(config: NetworkConfig, call: HostCall): Promise<Found> {
  const remedy = 'Run it as a user that may read the packet filter, on the router itself.';
  const sets = await setsOf(call);
  if ('reason' in sets) return unknown(`they cannot be read: ${sets.reason}`, remedy);
  const addresses = await addressesOf(call);
  if ('reason' in addresses) return unknown(`the addresses cannot be read: ${addresses.reason}`, remedy);
  const wanted = addressSets(config, addresses.value).filter(({ prefixes }) => prefixes.length > 0);
  const missing = wanted.flatMap(({ name, label, intf, prefixes }) => {
    const held = heldPrefixes({ [name]: prefixes }, sets.value)[name] ?? [];
    const lacking = prefixes.filter((prefix) => !held.includes(prefix));
    if (lacking.length === 0) return [];
    const who = label === intf ? intf : `${label}, ${intf}`;
    return [
      `${lacking.join(' and ')} is not in ${sets.value[name] ? '' : 'the missing set '}${name} (${who})`,
    ];
  });
  if (missing.length === 0) {
    const count = wanted.reduce((sum, { prefixes }) => sum + prefixes.length, 0);
    return { state: 'ok', found: `${wanted.length} sets hold the ${count} prefixes of their networks` };
  }
  return {
    state: 'fail',
    found: `${missing.join('; ')}: per-network policy does not cover it`,
    remedy: 'Wait a minute after a change of addresses. If it stays, see what fills the sets.',
  };
}

async function chainsCheck(call: HostCall): Promise<Found> {
  const reading = await chainsOf(call);
  if ('reason' in reading)
    return unknown(
      `they cannot be read: ${reading.reason}`,
      'Run it as a user that may read the packet filter.',
    );
  const { chains, ulaTarget } = reading.value;
  const missing = CHAINS.filter((name) => !chains.has(name));
  const remedy = '`router explain` counts on these chains: its answers do not hold here until they are back.';
  if (missing.length > 0) return { state: 'fail', found: `there is no chain ${missing.join(', ')}`, remedy };
  if (ulaTarget !== 'FW_ULA_LOCAL_ONLY') {
    const found = `FW_FORWARD sends sources in fc00::/7 to ${ulaTarget ?? 'no chain'}, not to FW_ULA_LOCAL_ONLY`;
    return { state: 'fail', found, remedy };
  }
  return {
    state: 'ok',
    found: 'the three chains are there, and FW_FORWARD sends fc00::/7 to FW_ULA_LOCAL_ONLY',
  };
}

async function filesCheck(
  config: NetworkConfig,
  confDir: string | undefined,
  isOurs: boolean,
): Promise<Found> {
  if (confDir === undefined)
    return unknown('it is not known where they are', 'Set the option `dhcpConfDir`.');
  const files = await filesOf(confDir, '_v6.conf');
  if ('reason' in files)
    return unknown(`they cannot be read: ${files.reason}`, 'Check the folder and its rights.');
  const wanted = new Map(
    [...generateFiles(config)].flatMap(([path, text]): [string, string][] => {
      const [, name] = /^dhcp\/conf\/(.*_v6\.conf)$/.exec(path) ?? [];
      return name === undefined ? [] : [[name, text]];
    }),
  );
  const wrong = [
    ...[...wanted.keys()].filter((name) => !files.value.has(name)).map((name) => `${name} is missing`),
    ...[...files.value.keys()]
      .filter((name) => !wanted.has(name))
      .map((name) => `${name} has no leg with dhcp6`),
    ...[...wanted].flatMap(([name, text]) => {
      const found = files.value.get(name);
      return found === undefined || isSame(text, found, isOurs) ? [] : [`${name} says something else`];
    }),
  ];
  if (wrong.length > 0) {
    const remedy = 'Post `apply_current_config`; a file that was edited by hand is overwritten.';
    return { state: 'fail', found: wrong.join('; '), remedy };
  }
  return { state: 'ok', found: `${wanted.size} files in ${confDir} are those of the legs with dhcp6` };
}

/** In another daemon's files only the line that decides what is advertised, and for how long, is compared. */
function isSame(wanted: string, found: string, isOurs: boolean): boolean {
  if (isOurs) return wanted === found;
  const range = (text: string) => /^dhcp-range=.*constructor:.*$/m.exec(text)?.[0];
  return range(wanted) === range(found);
}

async function serviceCheck(
  config: NetworkConfig,
  confDir: string | undefined,
  readWithinMs: number,
): Promise<Found> {
  const legs = advertisingLegs(config);
  if (confDir === undefined)
    return unknown('it is not known where its files are', 'Set the option `dhcpConfDir`.');
  const service = await dnsmasqOf(confDir);
  if ('reason' in service)
    return unknown(`processes cannot be read: ${service.reason}`, 'Run it on the router.');
  if (!service.value) {
    if (legs.length === 0) return { state: 'ok', found: 'no leg advertises, and no dnsmasq runs' };
    const found = `no dnsmasq runs, so nothing is advertised on ${legs.join(', ')}`;
    return { state: 'fail', found, remedy: 'Start it, and see in its log why it ended.' };
  }
  const { pid, since, readsFolder } = service.value;
  if (!readsFolder) {
    const found = `dnsmasq (pid ${pid}) runs, and nothing says that it reads ${confDir}`;
    return unknown(found, 'See which files its configuration names.');
  }
  const times = legs.map(async (leg) => {
    const at = await stat(join(confDir, `${leg}_v6.conf`)).then(
      ({ mtimeMs }) => mtimeMs,
      () => 0,
    );
    return at > since && Date.now() - at > readWithinMs ? [leg] : [];
  });
  const unread = (await Promise.all(times)).flat();
  if (unread.length > 0) {
    const found = `dnsmasq (pid ${pid}) runs since before the files of ${unread.join(', ')} were written, so it advertises what they said before`;
    return { state: 'fail', found, remedy: 'Restart the DHCP service.' };
  }
  const found = `dnsmasq (pid ${pid}) runs, and has read the files of ${legs.join(', ') || 'no leg'}`;
  return { state: 'ok', found };
}
