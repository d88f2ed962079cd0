import { HostError } from '../errors/host-error.ts';
import type { PluginDefinition } from './definition.ts';
import type { PluginRun } from './run.ts';

/** What decides whether the work of a plugin can be on another host. */
type Member = Pick<PluginRun, 'definition' | 'isHostBound' | 'declared' | 'error'>;

/**
 * The singletons that can be on another host: no plugin that belongs to one, or has a part that does, is bound to this host, and
 * none that belongs to one as a whole wants what a bound plugin provides. Who requires what a bound plugin provides is bound, too.
 *
 * @param plugins in start order; they have registered
 * @returns the plugins that belong to each as a whole, in the same order
 */
export function movableSingletons<P extends Member>(
  plugins: readonly P[],
): ReadonlyMap<string, readonly P[]> {
  const bound = new Set<string>();
  const fixed = new Set<string>();
  const groups = new Map<string, P[]>();
  const isAny = (tokens: PluginDefinition['requires'] = []) => tokens.some(({ name }) => bound.has(name));
  for (const plugin of plugins) {
    const { singleton, requires, wants, provides = [] } = plugin.definition;
    const isBound = plugin.isHostBound || isAny(requires);
    if (isBound) for (const { name } of provides) bound.add(name);
    for (const name of singletonsOf(plugin)) {
      const isWhole = name === singleton && !plugin.error;
      groups.set(name, [...(groups.get(name) ?? []), ...(isWhole ? [plugin] : [])]);
      // A part of a plugin that serves on every host finds there what the plugin wants.
      if (isBound || (name === singleton && isAny(wants))) fixed.add(name);
    }
  }
  for (const singleton of fixed) groups.delete(singleton);
  return groups;
}

/** Those that a plugin or a part of it belongs to. */
function singletonsOf({ definition, declared: { actors, controls, schedules } }: Member): Set<string> {
  const names = [definition, ...actors, ...controls, ...schedules].map(({ singleton }) => singleton);
  return new Set(names.filter((name) => name !== undefined));
}

/**
 * A plugin of a singleton can stop at any time and start again elsewhere. What others cannot do without, and what clients of
 * this host would lose, is none of its.
 *
 * @param runs that have registered
 * @throws HF_PLUGIN_SINGLETON
 */
export function refuseUnmovable(runs: readonly PluginRun[]): void {
  const providers = new Map<string, PluginRun>();
  const types = new Map<string, string>();
  for (const run of runs) {
    const { singleton, provides = [] } = run.definition;
    for (const { name } of provides) providers.set(name, run);
    for (const actor of run.declared.actors) {
      if (actor.singleton !== undefined) types.set(actor.type, actor.singleton);
    }
    if (singleton === undefined) continue;
    const refuse = (reason: string) => {
      throw new HostError('HF_PLUGIN_SINGLETON', { plugin: run.name, singleton, reason });
    };
    const { surfaces, listeners } = run.declared;
    const [listener] = [...surfaces.map(({ options }) => options), ...listeners];
    if (listener) refuse(`its listener ${listener.name} would be gone where the singleton is not`);
  }
  for (const { name: plugin, definition, declared } of runs) {
    for (const { name: token } of definition.requires ?? []) {
      const singleton = providers.get(token)?.definition.singleton;
      if (singleton === undefined || singleton === definition.singleton) continue;
      const reason = `it requires ${token}, which is there only where that singleton is`;
      throw new HostError('HF_PLUGIN_SINGLETON', { plugin, singleton, reason });
    }
    for (const { topic, to, everyHost } of declared.routes) {
      const singleton = types.get(to);
      if (!everyHost || singleton === undefined) continue;
      const reason = `its route of ${topic.name} leads to every host, and actors of type ${to} are on one of them`;
      throw new HostError('HF_PLUGIN_SINGLETON', { plugin, singleton, reason });
    }
  }
}
