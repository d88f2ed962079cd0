import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { fieldsOf, interfacesOf, isWan, stringsOf } from '../config/network-config.ts';

/** What a simulated rename puts behind a network's name; the next one takes it away. */
const SUFFIX = ' (renamed)';

export interface AppSave {
  readonly config: NetworkConfig;
  readonly intf: string;
  readonly name: string;
  /** Static addresses that the save drops. */
  readonly dropped: readonly string[];
}

/**
 * The config that the phone app posts for a rename: its own model of the network, which has no `ipv6` (router-config,
 * measured case). The next call renames the network back.
 *
 * @param leg interface; the first LAN with static IPv6 addresses unless given
 * @returns undefined when the config has no such LAN
 */
export function appSaveOf(config: NetworkConfig, leg: string | undefined): AppSave | undefined {
  const lans = interfacesOf(config).filter(({ config: fields }) => !isWan(fields));
  const chosen = lans.find(({ name, config: { ipv6 } }) =>
    leg === undefined ? stringsOf(ipv6).length > 0 : name === leg,
  );
  if (!chosen) return undefined;
  const { kind, name: intf, config: fields } = chosen;
  const { ipv6, ...rest } = fields;
  const meta = fieldsOf(rest.meta);
  const present = typeof meta.name === 'string' ? meta.name : intf;
  const name = present.endsWith(SUFFIX) ? present.slice(0, -SUFFIX.length) : present + SUFFIX;
  const kinds = fieldsOf(config.interface);
  const entries = { ...fieldsOf(kinds[kind]), [intf]: { ...rest, meta: { ...meta, name } } };
  return {
    config: { ...config, interface: { ...kinds, [kind]: entries } },
    intf,
    name,
    dropped: stringsOf(ipv6),
  };
}
