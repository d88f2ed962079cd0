import type { Graph, GraphNode } from './nodes.ts';

/** Groups of the flowchart from left to right. */
const GROUPS: readonly { readonly kind: GraphNode['kind']; readonly title: string }[] = [
  { kind: 'schedule', title: 'Schedules' },
  { kind: 'topic', title: 'Topics' },
  { kind: 'actor', title: 'Actors' },
  { kind: 'effect', title: 'Effects' },
  { kind: 'adapter', title: 'Adapters' },
];

const SHAPES: Readonly<Record<GraphNode['kind'], readonly [open: string, close: string]>> = {
  schedule: ['{{', '}}'],
  topic: ['([', '])'],
  actor: ['[', ']'],
  effect: ['>', ']'],
  adapter: ['[(', ')]'],
};

/** The graph as a Mermaid flowchart, grouped by kind. Actors and effects bear the name of their plugin. */
export function mermaid({ nodes, edges }: Graph): string[] {
  const ids = new Map(nodes.map((node) => [`${node.kind} ${node.name}`, idOf(node)]));
  return [
    'flowchart LR',
    ...GROUPS.flatMap(({ kind, title }) => {
      const members = nodes.filter((node) => node.kind === kind);
      if (members.length === 0) return [];
      return [`  subgraph ${kind}s["${title}"]`, ...members.map((node) => `    ${drawn(node)}`), '  end'];
    }),
    ...edges.map(({ from, to }) => `  ${ids.get(from)} --> ${ids.get(to)}`),
  ];
}

function drawn(node: GraphNode): string {
  const [open, close] = SHAPES[node.kind];
  const owner = node.plugin === undefined ? '' : `<br><small>${node.plugin}</small>`;
  return `${idOf(node)}${open}"${node.name.replaceAll('"', '#quot;')}${owner}"${close}`;
}

/** Mermaid's ids hold letters, digits and underscores. */
function idOf({ kind, name }: GraphNode): string {
  const word = name.replace(/[. ]/g, '_').replace(/\W/g, (character) => character.charCodeAt(0).toString(16));
  return `${kind}_${word}`;
}
