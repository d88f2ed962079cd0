// Places a statechart for the pages of the console, by ELK: not in the browser, because its script is larger than the whole
// console, and not on the thread of the instance, which it would hold up. What ELK cannot place is shown as an outline.

import ElkConstructor from 'elkjs/lib/elk.bundled.js';
import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js';
import type { Drawing, DrawnState, DrawnTransition } from './drawing.ts';
import { type GraphState, type GraphTransition, isLine, type MachineGraph } from './graph.ts';

/** Width of a character of the drawings' text, pixels. */
const CHARACTER = 6.7;
const LINE = 14;
/** Labels of one line that are drawn; the outline has all of them. */
const MOST_LABELS = 4;
/** Characters of one label. */
const LONGEST = 26;
/** Room inside of a state for its own name, pixels. */
const TITLE = 26;

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'POLYLINE',
  'elk.spacing.nodeNode': '28',
  'elk.spacing.edgeLabel': '4',
  'elk.spacing.edgeNode': '16',
  'elk.spacing.edgeEdge': '10',
  'elk.layered.spacing.nodeNodeBetweenLayers': '26',
  'elk.layered.spacing.edgeNodeBetweenLayers': '14',
  'elk.layered.mergeEdges': 'false',
  'elk.layered.feedbackEdges': 'false',
  'elk.edgeLabels.inline': 'true',
};

/** What a transition says beside its line. */
function labelOf({ event, delay, guard }: GraphTransition): string {
  const what = delay === undefined ? event : `after ${delay}`;
  const label = `${what}${guard === undefined ? '' : ` [${guard}]`}`.trim();
  return label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
}

/** Transitions between the same two states are one line. Those that only change the context are listed beside the drawing. */
function linesOf(transitions: readonly GraphTransition[]): Line[] {
  const lines = Map.groupBy(transitions.filter(isLine), ({ from, to }) => `${from} ${to}`);
  return [...lines.values()].flatMap((ways) => {
    const [first] = ways;
    if (!first) return [];
    const labels = [...new Set(ways.map(labelOf))].filter(Boolean);
    const more = labels.length - MOST_LABELS;
    const shown = more > 0 ? [...labels.slice(0, MOST_LABELS), `and ${more} more`] : labels;
    return { from: first.from, to: first.to, labels: shown };
  });
}

interface Line {
  readonly from: string;
  readonly to: string;
  readonly labels: readonly string[];
}

function nodeOf(state: GraphState): ElkNode {
  const width = state.name.length * CHARACTER + 28;
  return {
    id: state.id,
    ...(state.states.length === 0
      ? { width: Math.max(56, width), height: TITLE + 4 }
      : {
          children: state.states.map(nodeOf),
          layoutOptions: {
            'elk.padding': `[top=${TITLE + 10},left=14,bottom=14,right=14]`,
            'elk.nodeSize.constraints': 'MINIMUM_SIZE',
            'elk.nodeSize.minimum': `(${width}, ${TITLE + 20})`,
          },
        }),
  };
}

/**
 * Places a machine.
 *
 * @returns its drawing; undefined where it has one state, or ELK finds no layout
 */
export async function layOut({ states, transitions }: MachineGraph): Promise<Drawing | undefined> {
  const lines = linesOf(transitions);
  if (lines.length === 0) return undefined;
  const edges: ElkExtendedEdge[] = lines.map(({ from, to, labels }, index) => ({
    id: String(index),
    sources: [from],
    targets: [to],
    labels:
      labels.length === 0
        ? []
        : [
            {
              text: labels.join('\n'), // a label without text has no size
              width: Math.max(...labels.map((text) => text.length)) * CHARACTER + 6,
              height: labels.length * LINE,
            },
          ],
  }));
  const elk: ELK = new ElkConstructor.default();
  try {
    const graph = { id: 'root', layoutOptions: OPTIONS, children: states.map(nodeOf), edges };
    return drawn(await elk.layout(graph), states, lines);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return undefined;
  }
}

type Point = { readonly x: number; readonly y: number };

function drawn(root: ElkNode, states: readonly GraphState[], lines: readonly Line[]): Drawing {
  const places = new Map<string, Point>([['root', { x: 0, y: 0 }]]);
  return {
    width: Math.ceil(root.width ?? 0),
    height: Math.ceil(root.height ?? 0),
    states: placed(root.children ?? [], { x: 0, y: 0 }, states, states[0]?.name, places),
    transitions: (root.edges ?? []).flatMap((edge) => lineOf(edge, lines[Number(edge.id)], places) ?? []),
  };
}

/** The states of one level with those inside of them; notes where each of them lies. */
function placed(
  nodes: readonly ElkNode[],
  around: Point,
  known: readonly GraphState[],
  initial: string | undefined,
  places: Map<string, Point>,
): DrawnState[] {
  return nodes.flatMap((node) => {
    const state = known.find(({ id }) => id === node.id);
    if (!state) return [];
    const own = { x: Math.round(around.x + (node.x ?? 0)), y: Math.round(around.y + (node.y ?? 0)) };
    places.set(node.id, own);
    const { id, name, kind } = state;
    const size = { width: Math.round(node.width ?? 0), height: Math.round(node.height ?? 0) };
    const inner = placed(node.children ?? [], own, state.states, state.initial, places);
    return [{ id, name, kind, ...own, ...size, isInitial: name === initial }, ...inner];
  });
}

function lineOf(
  edge: ElkExtendedEdge & { readonly container?: string },
  line: Line | undefined,
  places: ReadonlyMap<string, Point>,
): DrawnTransition | undefined {
  const section = edge.sections?.[0];
  if (!line || !section) return undefined;
  const own = places.get(edge.container ?? 'root') ?? { x: 0, y: 0 };
  const moved = ({ x = 0, y = 0 }: { x?: number; y?: number }) => ({
    x: Math.round(own.x + x),
    y: Math.round(own.y + y),
  });
  return {
    from: line.from,
    to: line.to,
    points: [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map(moved),
    label: { ...moved(edge.labels?.[0] ?? {}), lines: line.labels },
  };
}
