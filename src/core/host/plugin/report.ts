import type { PluginStatus } from './definition.ts';
import type { PluginSummary } from './registrations.ts';

/**
 * The start of all plugins as lines of a tree. A plugin hangs under the last one it had to wait for; its own
 * milliseconds stand behind it, or why it failed.
 *
 * @param plugins in start order
 * @param statuses in the same order
 * @param totalMs how long all starts took together
 */
export function bootReport(
  plugins: readonly PluginSummary[],
  statuses: readonly PluginStatus[],
  totalMs: number,
): string[] {
  const index = new Map(plugins.flatMap(({ provides }, at) => provides.map((token) => [token, at] as const)));
  const children = new Map<number, number[]>();
  for (const [at, { requires }] of plugins.entries()) {
    const parent = Math.max(-1, ...requires.map((token) => index.get(token) ?? -1));
    children.set(parent, [...(children.get(parent) ?? []), at]);
  }
  const started = statuses.filter(({ state }) => state === 'started').length;
  const lines = [`plugins ${started}/${plugins.length} started in ${totalMs} ms`];
  const draw = (parent: number, indent: string): void => {
    const below = children.get(parent) ?? [];
    for (const [position, at] of below.entries()) {
      const last = position === below.length - 1;
      lines.push(`${indent}${last ? '└── ' : '├── '}${label(plugins[at], statuses[at])}`);
      draw(at, `${indent}${last ? '    ' : '│   '}`);
    }
  };
  draw(-1, '');
  return lines;
}

function label(plugin: PluginSummary | undefined, status: PluginStatus | undefined): string {
  if (!plugin || !status) return '';
  const provides = plugin.provides.length > 0 ? ` · provides ${plugin.provides.join(', ')}` : '';
  const ms = status.startMs === undefined ? '' : ` ${status.startMs} ms`;
  if (status.state === 'waiting') return `${plugin.name} waits: ${status.reason ?? ''}`;
  if (status.state === 'failed') return `${plugin.name} failed${ms && ` after${ms}`}: ${status.reason ?? ''}`;
  return `${plugin.name}${ms}${provides}`;
}
