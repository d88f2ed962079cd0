import type { Registrations } from '../../core/host/plugin/registrations.ts';
import { effectTypes } from '../../core/kernel/actors/definition.ts';

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
