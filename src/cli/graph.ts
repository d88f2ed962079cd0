import type { CommandRun } from '../core/host/plugin/command.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import { effectTypes } from '../core/kernel/actors/definition.ts';

/** `holdfast graph`: what the plugins declare, as a flowchart. Nothing is started. */
export const drawGraph: CommandRun = async (_args, _flags, { registrations, json, print }) => {
  const drawn = graphOf(await registrations());
  if (json) return print(JSON.stringify(drawn, null, 2));
  for (const line of mermaid(drawn)) print(line);
};

/** Something that the graph shows. */
export interface GraphNode {
  readonly kind: 'schedule' | 'topic' | 'actor' | 'effect' | 'adapter';
  readonly name: string;
  /** The plugin that declares it, where it is one. */
  readonly plugin?: string;
  readonly summary?: string;
}

/** Both ends as `kind name`. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
}

/** The flow that the plugins declare: schedule → topic → actor → effect → adapter. */
export interface Graph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** Reads the flow from registrations alone; the same plugins give the same graph, in whatever order they stand. */
export function graphOf(registrations: Registrations): Graph {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const add = (node: GraphNode): string => {
    const id = `${node.kind} ${node.name}`;
    if (!nodes.has(id)) nodes.set(id, node);
    return id;
  };
  const connect = (from: string, to: string) => edges.set(`${from} ${to}`, { from, to });
  const { actors, effects, routes, schedules } = registrations;
  const handlers = new Map(effects.map((effect) => [effect.type, effect]));
  for (const { type, machine, owner } of actors) {
    const actor = add({ kind: 'actor', name: type, plugin: owner, summary: machine.id });
    for (const name of effectTypes(machine)) {
      const handler = handlers.get(name);
      const effect = add({ kind: 'effect', name, plugin: handler?.owner ?? 'core' });
      connect(actor, effect);
      // An effect that calls several names them all.
      for (const adapter of handler?.adapter?.split(/,\s*/) ?? []) {
        connect(effect, add({ kind: 'adapter', name: adapter }));
      }
    }
  }
  for (const { topic, to } of routes) {
    connect(add({ kind: 'topic', name: topic.name, summary: topic.summary }), `actor ${to}`);
  }
  for (const { cron, topic } of schedules) {
    const schedule = add({ kind: 'schedule', name: cron });
    connect(schedule, add({ kind: 'topic', name: topic.name, summary: topic.summary }));
  }
  return { nodes: inOrder(nodes), edges: inOrder(edges) };
}

function inOrder<T>(items: ReadonlyMap<string, T>): T[] {
  return [...items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}

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
