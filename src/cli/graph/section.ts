import type { Registrations } from '../../core/host/plugin/registrations.ts';
import { mermaid } from './mermaid.ts';
import { graphOf } from './nodes.ts';
import { pluginTable } from './plugins.ts';

/** A page with the graph and the table of plugins, each between its two markers, made anew from what plugins declare. */
export function graphSection(page: string, registrations: Registrations): string {
  const chart = ['```mermaid', ...mermaid(graphOf(registrations)), '```'];
  return between(between(page, 'plugins', ['', ...pluginTable(registrations), '']), 'graph', chart);
}

function between(page: string, marker: string, lines: readonly string[]): string {
  const [begin, end] = [`<!-- ${marker} -->`, `<!-- /${marker} -->`];
  const [before = '', rest = ''] = page.split(begin);
  const after = rest.split(end)[1] ?? '';
  return [before + begin, ...lines, end + after].join('\n');
}
