import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import type { Registrations } from '../../core/host/plugin/registrations.ts';
import { table } from '../../core/host/terminal.ts';
import { version } from '../../core/kernel/version.ts';
import { type Instance, inspectInstance } from '../instance.ts';

/** What is shown of a plugin. */
interface ListedPlugin {
  readonly name: string;
  /** As the running instance says; `listed` while nothing runs, `unknown` where no health page says it. */
  readonly state: string;
  readonly reason?: string;
  /** What it brings, in words. */
  readonly provides: readonly string[];
  /** The file that defines it, relative to the configuration; the release for those that it brings. */
  readonly from: string;
}

/** `holdfast plugin list`: what runs, what each plugin provides, and from where it comes. */
export const listPlugins: CommandRun = async (_args, _flags, context) => {
  const { config, registrations, dataDir, signal, json, print, terminal } = context;
  const { file, plugins } = await config();
  const declared = await registrations();
  const instance = await inspectInstance(dataDir, { now: Date.now(), signal, reports: async () => ({}) });
  const states = new Map(instance.plugins?.map((plugin) => [plugin.name, plugin]));
  const listed = plugins.map(({ definition: { name, file: from } }): ListedPlugin => {
    const state = instance.running ? states.get(name) : undefined;
    return {
      name,
      state: state?.state ?? absentState(instance),
      ...(state?.reason !== undefined && { reason: state.reason }),
      provides: provisions(declared, name),
      from: originOf(from, dirname(file)),
    };
  });
  if (json) return print(JSON.stringify(listed, null, 2));
  const rows = listed.map(({ name, state, provides, from }) => [name, state, from, provides.join(', ')]);
  for (const line of table([['plugin', 'state', 'from', 'provides'], ...rows], terminal).flat()) print(line);
};

function absentState({ running, plugins }: Pick<Instance, 'running' | 'plugins'>): string {
  if (!running) return 'listed';
  return plugins ? 'not in the running instance' : 'unknown';
}

/** @param from URL of the module that called `definePlugin` */
function originOf(from: string | undefined, project: string): string {
  if (from === undefined) return 'unknown';
  const own = new URL('../../plugins/', import.meta.url).href;
  if (from.startsWith(own)) return `holdfast ${version}`;
  return from.startsWith('file:') ? relative(project, fileURLToPath(from)) : from;
}

/** What a plugin declares, shortly: names where there are few, numbers where nobody would read names. */
function provisions(registrations: Registrations, plugin: string): string[] {
  const of = <T extends { readonly owner: string }>(items: readonly T[]) =>
    items.filter(({ owner }) => owner === plugin);
  const named = (kind: string, names: readonly string[]) => names.map((name) => `${kind} ${name}`);
  const { surfaces, listeners, actors, effects, commands, checks, contributions } = registrations;
  const counted = (count: number, one: string, many: string) =>
    count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  const { provides: tokens = [], singleton } =
    registrations.plugins.find(({ name }) => name === plugin) ?? {};
  return [
    ...tokens,
    ...named('singleton', singleton === undefined ? [] : [singleton]),
    ...named('surface', [
      ...of(surfaces).map(({ options }) => options.name),
      ...of(listeners).map(({ name }) => name),
    ]),
    ...new Set(of(contributions).map(({ point }) => `a part of ${point}`)),
    ...named(
      'actor',
      of(actors).map(({ type }) => type),
    ),
    ...counted(of(effects).length, 'effect', 'effects'),
    ...counted(of(commands).length, 'command', 'commands'),
    ...counted(of(checks).length, 'check', 'checks'),
  ];
}
