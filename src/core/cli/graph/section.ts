import type { Registrations } from '../../plugin/index.ts';
import { mermaid } from './mermaid.ts';
import { graphOf } from './nodes.ts';

const BEGIN = '<!-- graph -->';
const END = '<!-- /graph -->';

/** A page with the graph between its two markers drawn anew from what the plugins declare. */
export function graphSection(page: string, registrations: Registrations): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const after = rest.split(END)[1] ?? '';
  const chart = ['```mermaid', ...mermaid(graphOf(registrations)), '```'].join('\n');
  return `${before}${BEGIN}\n${chart}\n${END}${after}`;
}
