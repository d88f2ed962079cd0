import type { PageSection } from '../../api/types.ts';
import { duration } from '../text.tsx';
import { StatusMark } from './states.tsx';

type Span = Extract<PageSection, { kind: 'waterfall' }>['spans'][number];

interface Row {
  readonly span: Span;
  readonly depth: number;
}

/** Each span below the one that it is a part of, in the order in which they began. */
function rowsOf(spans: readonly Span[]): Row[] {
  const known = new Set(spans.map(({ id }) => id));
  const isRoot = ({ id, parent }: Span) => parent === undefined || parent === id || !known.has(parent);
  const parts = Map.groupBy(spans, (span) => (isRoot(span) ? undefined : span.parent));
  const rows: Row[] = [];
  const add = (parent: string | undefined, depth: number) => {
    const own = parts.get(parent) ?? [];
    parts.delete(parent); // spans that are parts of each other are drawn once
    for (const span of own.toSorted((a, b) => a.start - b.start)) {
      rows.push({ span, depth });
      add(span.id, depth + 1);
    }
  };
  add(undefined, 0);
  for (const [, left] of parts) rows.push(...left.map((span) => ({ span, depth: 0 })));
  return rows;
}

/** Spans on one axis of time. Each is also a line of text, with what else is known of it. */
export function Waterfall({ spans }: { spans: readonly Span[] }) {
  if (spans.length === 0) return <p class="quiet">None.</p>;
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.max(...spans.map((span) => span.start + span.duration));
  const all = Math.max(end - start, 0.001);
  return (
    <ol class="waterfall">
      {rowsOf(spans).map(({ span, depth }) => (
        <li key={span.id}>
          <details>
            <summary>
              <span class="span-name" style={{ paddingInlineStart: `${Math.min(depth, 12)}em` }}>
                {span.status && span.status !== 'ok' && <StatusMark status={span.status} />} {span.name}{' '}
                <span class="quiet">{span.by}</span>
              </span>
              <span class="span-time" aria-hidden="true">
                <span
                  class={`span-bar ${span.status ?? 'ok'}`}
                  style={{
                    marginInlineStart: `${(((span.start - start) / all) * 100).toFixed(2)}%`,
                    width: `${((span.duration / all) * 100).toFixed(2)}%`,
                  }}
                />
              </span>
              <span class="span-length">
                {duration(span.duration)}
                <span class="quiet"> after {duration(span.start - start)}</span>
              </span>
            </summary>
            <dl class="facts">
              {Object.entries(span.facts ?? {}).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{String(value)}</dd>
                </div>
              ))}
            </dl>
          </details>
        </li>
      ))}
    </ol>
  );
}
