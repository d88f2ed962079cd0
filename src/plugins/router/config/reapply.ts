import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { isObject, jsonEqual } from '../../../core/kernel/json.ts';
import { fieldsOf, interfacesOf, stringsOf } from './network-config.ts';

/** One thing that is applied as a whole, e.g. `interface.vlan.eth1.10` or `dns.eth1.10`. */
export interface Instance {
  readonly path: string;
  /** The owner of that part of the config: `interface`, `routing`, `dns`, … */
  readonly plugin: string;
  /** The map of `interface` it stands in. */
  readonly kind?: string;
  readonly name: string;
  readonly value: unknown;
}

/** What must be applied to get from one config to another. */
export interface ReapplyPlan {
  /** Gone from the config, in the order in which they are taken down. */
  readonly removed: readonly Instance[];
  /** New or changed, and what depends on them, in the order in which they are applied. */
  readonly applied: readonly Instance[];
  /** The previous values of what is removed or applied. */
  readonly replaced: readonly Instance[];
  /** Names of the interfaces among the removed and the applied. */
  readonly interfaces: readonly string[];
}

/** Parts of a config whose instances are named after the interface that they serve. */
const PER_INTERFACE = [
  'dns',
  'dhcp',
  'dhcp6',
  'hostapd',
  'sshd',
  'upnp',
  'icmp',
  'mdns_reflector',
  'igmp_proxy',
  'mroute',
];
/** The parts of a config that are applied, in this order. Other keys are stored only. */
const PLUGINS = ['interface', 'routing', 'nat', 'nat_passthrough', ...PER_INTERFACE, 'apc'];

/**
 * Compares two configs per instance (R14): an equal instance is skipped, unless it depends on an interface that
 * changed. The display name (`meta.name`) and the app's own data (`extra`) are not compared.
 *
 * @param before undefined when nothing is applied yet
 * @param all reapply equal instances, too (R11)
 */
export function planReapply(
  before: NetworkConfig | undefined,
  after: NetworkConfig,
  all = false,
): ReapplyPlan {
  const from = instancesOf(before ?? {});
  const to = instancesOf(after);
  const removed = [...from.values()].filter(({ path }) => !to.has(path)).reverse();
  const chosen = new Set<string>();
  const touched = new Set<string>();
  const choose = (instance: Instance): void => {
    chosen.add(instance.path);
    if (instance.plugin === 'interface') touched.add(instance.name);
  };
  for (const instance of removed) if (instance.plugin === 'interface') touched.add(instance.name);
  // An interface with the name of a removed one is made anew, because the kernel has one device for both.
  for (const instance of to.values()) {
    const isTaken = instance.plugin === 'interface' && touched.has(instance.name);
    if (all || isTaken || !same(from.get(instance.path), instance)) choose(instance);
  }
  for (let grown = touched.size > 0; grown; ) {
    grown = false;
    for (const instance of to.values()) {
      if (chosen.has(instance.path) || !dependsOn(instance).some((name) => touched.has(name))) continue;
      choose(instance);
      grown = true;
    }
  }
  const applied = [...to.values()].filter(({ path }) => chosen.has(path));
  const names = [...removed, ...applied].filter(({ plugin }) => plugin === 'interface');
  const replaced = [...removed, ...applied].flatMap(({ path }) => from.get(path) ?? []);
  return { removed, applied, replaced, interfaces: [...new Set(names.map(({ name }) => name))] };
}

/** The plan that reapplies some interfaces of an unchanged config: for changes outside of the config (R17). */
export function planInterfaces(config: NetworkConfig, names: ReadonlySet<string>): ReapplyPlan {
  const applied = [...instancesOf(config).values()].filter(
    ({ plugin, name }) => plugin === 'interface' && names.has(name),
  );
  return { removed: [], applied, replaced: applied, interfaces: applied.map(({ name }) => name) };
}

/** What was applied is what the next config is compared with, as the same object, which nobody changes any more. */
const known = new WeakMap<NetworkConfig, ReadonlyMap<string, Instance>>();

function instancesOf(config: NetworkConfig): ReadonlyMap<string, Instance> {
  const instances = known.get(config) ?? listInstances(config);
  known.set(config, instances);
  return instances;
}

/** The instances of a config by path, in the order in which they are applied. */
function listInstances(config: NetworkConfig): ReadonlyMap<string, Instance> {
  const instances = PLUGINS.flatMap((plugin): Instance[] => {
    const part = config[plugin];
    if (plugin === 'interface') return lowerFirst(interfaceInstances(config));
    if (plugin === 'apc') return isObject(part) ? [{ path: plugin, plugin, name: plugin, value: part }] : [];
    return Object.entries(fieldsOf(part)).map(([name, value]) => {
      return { path: `${plugin}.${name}`, plugin, name, value };
    });
  });
  return new Map(instances.map((instance) => [instance.path, instance]));
}

function interfaceInstances(config: NetworkConfig): Instance[] {
  return interfacesOf(config).map(({ kind, name, config: value }) => {
    return { path: `interface.${kind}.${name}`, plugin: 'interface', kind, name, value: applicable(value) };
  });
}

/** The interfaces without which an instance does not work. */
function dependsOn({ plugin, name, value }: Instance): string[] {
  const fields = fieldsOf(value);
  if (plugin === 'interface') {
    const { intf, ipv6DelegateFrom, ipv6PassthroughFrom } = fields;
    return [intf, ipv6DelegateFrom, ipv6PassthroughFrom].flatMap(stringsOf);
  }
  if (plugin === 'nat') return [fields.in, fields.out].flatMap(stringsOf);
  if (plugin === 'routing') return [name, ...viaInterfaces(value)];
  return PER_INTERFACE.includes(plugin) ? [name, ...stringsOf(fields.bridge)] : [];
}

/** Every interface that a part of `routing` uses. */
export function viaInterfaces(routing: unknown): string[] {
  if (Array.isArray(routing)) return routing.flatMap(viaInterfaces);
  return Object.entries(fieldsOf(routing)).flatMap(([key, value]) =>
    key.startsWith('viaIntf') ? stringsOf(value) : viaInterfaces(value),
  );
}

function applicable(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { extra: _, meta, ...rest } = value;
  if (!isObject(meta)) return rest;
  const { name: __, ...kept } = meta;
  return { ...rest, meta: kept };
}

function same(a: Instance | undefined, b: Instance): boolean {
  return a !== undefined && jsonEqual(a.value, b.value);
}

/** Lower devices and delegating WANs come before what depends on them; otherwise the order of the config is kept. */
function lowerFirst(instances: readonly Instance[]): Instance[] {
  const byName = new Map(instances.map((instance) => [instance.name, instance]));
  const ordered = new Set<Instance>();
  const visit = (instance: Instance, above: ReadonlySet<Instance>): void => {
    if (ordered.has(instance) || above.has(instance)) return; // a circle is the kernel's to refuse
    const lower = dependsOn(instance).flatMap((name) => byName.get(name) ?? []);
    if (lower.length > 0) {
      const path = new Set(above).add(instance);
      for (const other of lower) visit(other, path);
    }
    ordered.add(instance);
  };
  for (const instance of instances) visit(instance, new Set());
  return [...ordered];
}
