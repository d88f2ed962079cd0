import type { PageSection } from '../../api/types.ts';

export type Span = Extract<PageSection, { kind: 'waterfall' }>['spans'][number];

/** A span with its place among the others. */
export interface SpanNode {
  readonly span: Span;
  /** Its own, also where two spans have one id. */
  readonly key: string;
  readonly depth: number;
  readonly parent: SpanNode | undefined;
  readonly parts: SpanNode[];
  /** Failed spans below it. */
  failedWithin: number;
}

/** All spans of a trace, each below the one that it is a part of. */
export interface SpanTree {
  /** In the order in which they are drawn. */
  readonly nodes: readonly SpanNode[];
  /** Those that failed, and nothing below them did: where a failure began. */
  readonly origins: readonly SpanNode[];
  readonly failed: number;
  /** The ends of all, epoch milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Who did it, those first that began first, with how many spans. */
  readonly services: ReadonlyMap<string, number>;
}

/** The part of the time that is drawn; epoch milliseconds. */
export interface View {
  readonly from: number;
  readonly to: number;
}

const isFailed = ({ span: { status } }: SpanNode): boolean => status === 'failing';

/** Spans that are parts of each other, or of one that is not known, are drawn too. */
export function treeOf(spans: readonly Span[]): SpanTree {
  const known = new Set(spans.map(({ id }) => id));
  const isRoot = ({ id, parent }: Span) => parent === undefined || parent === id || !known.has(parent);
  const inOrder = spans.toSorted((a, b) => a.start - b.start);
  const parts = Map.groupBy(inOrder, (span) => (isRoot(span) ? undefined : span.parent));
  const nodes: SpanNode[] = [];
  const place = (own: readonly Span[], parent: SpanNode | undefined) => {
    // The newest is on top of the stack last, so that the oldest is drawn first.
    const stack = own.toReversed().map((span) => ({ span, parent }));
    for (let next = stack.pop(); next; next = stack.pop()) {
      const depth = next.parent ? next.parent.depth + 1 : 0;
      const node: SpanNode = {
        ...{ span: next.span, parent: next.parent, depth, parts: [], failedWithin: 0 },
        key: `${nodes.length} ${next.span.id}`,
      };
      nodes.push(node);
      next.parent?.parts.push(node);
      const below = parts.get(next.span.id) ?? [];
      parts.delete(next.span.id); // spans that are parts of each other are drawn once
      stack.push(...below.toReversed().map((span) => ({ span, parent: node })));
    }
  };
  place(parts.get(undefined) ?? [], undefined);
  parts.delete(undefined);
  for (const [id, left] of [...parts]) if (parts.delete(id)) place(left, undefined);
  for (const node of nodes.filter(isFailed))
    for (let above = node.parent; above; above = above.parent) above.failedWithin += 1;
  const services = new Map<string, number>();
  for (const { by } of inOrder) services.set(by, (services.get(by) ?? 0) + 1);
  return {
    nodes,
    origins: nodes.filter((node) => isFailed(node) && node.failedWithin === 0),
    failed: nodes.filter(isFailed).length,
    from: inOrder.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY),
    to: inOrder.reduce(
      (most, { start, duration }) => Math.max(most, start + duration),
      Number.NEGATIVE_INFINITY,
    ),
    services,
  };
}

/** What is drawn when some are folded. @param folded keys of spans whose parts are hidden */
export function openNodes({ nodes }: SpanTree, folded: ReadonlySet<string>): SpanNode[] {
  const open: SpanNode[] = [];
  let hiddenBelow = Number.POSITIVE_INFINITY;
  for (const node of nodes) {
    if (node.depth > hiddenBelow) continue;
    hiddenBelow = folded.has(node.key) ? node.depth : Number.POSITIVE_INFINITY;
    open.push(node);
  }
  return open;
}

/** The colour of a service: its name in the style sheet. */
export function colourOf({ services }: Pick<SpanTree, 'services'>, by: string): string {
  return `series-${([...services.keys()].indexOf(by) % 8) + 1}`;
}

/** A length of milliseconds or less, precisely, e.g. `1.25 ms`, `340 µs`. @param ms milliseconds */
export function preciseLength(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toLocaleString(undefined, { maximumFractionDigits: 2 })} s`;
  if (ms >= 1) return `${ms.toLocaleString(undefined, { maximumFractionDigits: 2 })} ms`;
  return `${(ms * 1_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} µs`;
}
