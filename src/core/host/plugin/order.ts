import { HostError } from '../errors/host-error.ts';
import type { TokenUser } from './container.ts';

/**
 * Brings plugins into start order: whoever provides a token comes before whoever requires it, and whoever collects
 * contributions after the others (C12). Where nothing is required, wanted or collected, the order of the configuration
 * stays.
 *
 * @throws HF_PLUGIN_MISSING nobody provides a required token
 * @throws HF_PLUGIN_CONFLICT two plugins of one name, or two providers of one token
 * @throws HF_PLUGIN_CYCLE plugins require each other in a circle
 */
export function startOrder<P extends TokenUser>(plugins: readonly P[]): P[] {
  refuseEqualNames(plugins);
  const providers = providersOf(plugins);
  const ordered = new Set<P>();
  const path: P[] = [];

  const place = (plugin: P): void => {
    if (ordered.has(plugin)) return;
    const seen = path.indexOf(plugin);
    if (seen >= 0) {
      const cycle = [...path.slice(seen), plugin].map(({ name }) => name).join(' → ');
      throw new HostError('HF_PLUGIN_CYCLE', { cycle });
    }
    path.push(plugin);
    for (const token of plugin.requires ?? []) {
      const provider = providers.get(token.name);
      if (!provider) throw new HostError('HF_PLUGIN_MISSING', { plugin: plugin.name, token: token.name });
      place(provider);
    }
    for (const token of plugin.wants ?? []) {
      const provider = providers.get(token.name);
      if (provider) place(provider);
    }
    path.pop();
    ordered.add(plugin);
  };

  for (const plugin of plugins) if (!plugin.collects) place(plugin);
  for (const plugin of plugins) if (!ordered.has(plugin)) place(plugin);
  return [...ordered];
}

function providersOf<P extends TokenUser>(plugins: readonly P[]): Map<string, P> {
  const providers = new Map<string, P>();
  for (const plugin of plugins) {
    for (const { name: token } of plugin.provides ?? []) {
      const first = providers.get(token);
      if (first) {
        const both = { first: first.name, second: plugin.name };
        throw new HostError('HF_PLUGIN_CONFLICT', { what: `Token ${token}`, ...both });
      }
      providers.set(token, plugin);
    }
  }
  return providers;
}

function refuseEqualNames(plugins: readonly TokenUser[]): void {
  const entries = new Map<string, number>();
  for (const [index, { name }] of plugins.entries()) {
    const first = entries.get(name);
    if (first !== undefined) {
      const both = { first: `entry ${first + 1}`, second: `entry ${index + 1}` };
      throw new HostError('HF_PLUGIN_CONFLICT', { what: `Plugin ${name}`, ...both });
    }
    entries.set(name, index);
  }
}
