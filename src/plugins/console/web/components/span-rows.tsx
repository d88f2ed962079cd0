import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, Time } from '../text.tsx';
import { colourOf, preciseLength, type SpanNode, type SpanTree, type View } from './span-tree.ts';
import { StatusMark } from './states.tsx';

/** Pixels of one row; all have it, so that thousands need no measuring. */
const ROW = 26;
const SPARE = 8;
const MOST_INDENT = 14;

interface Props {
  readonly tree: SpanTree;
  readonly rows: readonly SpanNode[];
  readonly view: View;
  readonly folded: ReadonlySet<string>;
  /** Index of the chosen row; -1 for none. */
  readonly at: number;
  readonly choose: (key: string) => void;
  readonly fold: (key: string, isFolded: boolean) => void;
  readonly zoomToSpan: () => void;
  readonly onView: (view: View) => void;
}

/** The spans as a tree of which only the visible rows are in the page. */
export function SpanRows({ tree, rows, view, folded, at, choose, fold, zoomToSpan, onView }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(480);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const sizes = new ResizeObserver(() => setHeight(element.clientHeight));
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!element || at < 0) return;
    if (at * ROW < element.scrollTop) element.scrollTop = at * ROW;
    else if ((at + 1) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = (at + 1) * ROW - element.clientHeight;
  }, [at]);
  const node = rows[at];
  const go = (index: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, index))];
    if (next) choose(next.key);
  };
  const screen = Math.max(1, Math.floor(height / ROW) - 1);
  const pan = (share: number) => {
    const shift = (view.to - view.from) * share;
    onView({ from: view.from + shift, to: view.to + shift });
  };
  const zoom = (factor: number) => {
    const middle = node ? node.span.start + node.span.duration / 2 : (view.from + view.to) / 2;
    onView({ from: middle - (middle - view.from) * factor, to: middle + (view.to - middle) * factor });
  };
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at < 0 ? 0 : at - 1),
    PageDown: () => go(at + screen),
    PageUp: () => go(at - screen),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    ArrowRight: () => {
      if (node && folded.has(node.key)) fold(node.key, false);
      else if (node?.parts[0]) choose(node.parts[0].key);
    },
    ArrowLeft: () => {
      if (node && node.parts.length > 0 && !folded.has(node.key)) fold(node.key, true);
      else if (node?.parent) choose(node.parent.key);
    },
    Enter: zoomToSpan,
    ' ': () => node && node.parts.length > 0 && fold(node.key, !folded.has(node.key)),
    '+': () => zoom(0.5),
    '-': () => zoom(2),
    w: () => zoom(0.5),
    s: () => zoom(2),
    a: () => pan(-0.25),
    d: () => pan(0.25),
  };
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + SPARE);
  const idOf = (index: number) => `span-row-${index}`;
  return (
    <div
      ref={box}
      class="spans"
      role="tree"
      tabIndex={0}
      aria-label="Spans"
      aria-activedescendant={at >= first && at < last ? idOf(at) : undefined}
      style={{ maxHeight: `max(${6 * ROW}px, 60vh)` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={(event) => {
        const key = keys[event.key];
        if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        key();
      }}
    >
      <div class="spans-all" role="none" style={{ height: `${rows.length * ROW}px` }}>
        {rows.slice(first, last).map((row, index) => (
          <SpanRow
            key={row.key}
            id={idOf(first + index)}
            node={row}
            tree={tree}
            view={view}
            top={(first + index) * ROW}
            isFolded={folded.has(row.key)}
            isChosen={row === node}
            onChoose={() => choose(row.key)}
            onFold={() => fold(row.key, !folded.has(row.key))}
            onZoom={zoomToSpan}
          />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  readonly id: string;
  readonly node: SpanNode;
  readonly tree: SpanTree;
  readonly view: View;
  /** Pixels. */
  readonly top: number;
  readonly isFolded: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
  readonly onFold: () => void;
  readonly onZoom: () => void;
}

function SpanRow({ id, node, tree, view, top, isFolded, isChosen, onChoose, onFold, onZoom }: RowProps) {
  const { span, depth, parts, failedWithin } = node;
  const whole = view.to - view.from;
  const share = (time: number) => Math.min(1, Math.max(0, (time - view.from) / whole)) * 100;
  const [left, right] = [share(span.start), share(span.start + span.duration)];
  const isSeen = span.start <= view.to && span.start + span.duration >= view.from;
  const isFailed = span.status === 'failing';
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and names the chosen one
    <div
      id={id}
      class={isFailed ? 'span failed' : 'span'}
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={isChosen}
      aria-expanded={parts.length > 0 ? !isFolded : undefined}
      style={{ top: `${top}px`, height: `${ROW}px` }}
      onClick={onChoose}
      onDblClick={onZoom}
    >
      <span class="span-name" style={{ paddingInlineStart: `${Math.min(depth, MOST_INDENT) * 0.8}em` }}>
        <span
          class="fold"
          aria-hidden="true"
          onClick={(event) => {
            if (parts.length === 0) return;
            event.stopPropagation();
            onFold();
          }}
        >
          {parts.length === 0 ? '' : isFolded ? '▸' : '▾'}
        </span>
        <span class={`swatch ${colourOf(tree, span.by)}`} /> {isFailed && <Cross text="failed" />}{' '}
        {isFolded && failedWithin > 0 && <Cross text={`${failedWithin} failed within`} isShown />}
        <strong>{span.by}</strong> {span.name}
        {isFolded && <span class="quiet"> +{parts.length}</span>}
      </span>
      <span class="span-time">
        {isSeen && (
          <span
            class={`span-bar ${isFailed ? 'failing' : colourOf(tree, span.by)}`}
            style={{ insetInlineStart: `${left}%`, width: `${Math.max(right - left, 0)}%` }}
          />
        )}
        {span.marks?.map(
          (mark, index) =>
            mark.time >= view.from &&
            mark.time <= view.to && (
              <span
                key={index}
                class={`span-mark ${mark.status ?? ''}`}
                title={mark.text}
                style={{ insetInlineStart: `${share(mark.time)}%` }}
              />
            ),
        )}
      </span>
      <span class="span-length">
        {preciseLength(span.duration)}
        <span class="hidden"> after {preciseLength(span.start - tree.from)}</span>
      </span>
    </div>
  );
}

/** A failure as a sign, and in words for those who cannot see it. */
function Cross({ text, isShown = false }: { text: string; isShown?: boolean }) {
  return (
    <span class="status failing">
      <span aria-hidden="true">✕ </span>
      <span class={isShown ? undefined : 'hidden'}>{text} </span>
    </span>
  );
}

/** What is known of the chosen span. */
export function SpanDetail({ node: { span, parts }, start }: { node: SpanNode; start: number }) {
  return (
    <section class="span-detail" aria-label={`Span ${span.name}`}>
      <h3>
        {span.status && <StatusMark status={span.status} />} {span.by}: {span.name}
      </h3>
      <dl class="facts">
        <div>
          <dt>Took</dt>
          <dd>
            {preciseLength(span.duration)}, from {preciseLength(span.start - start)} on (
            <Time ms={span.start} millis />)
          </dd>
        </div>
        {parts.length > 0 && (
          <div>
            <dt>Parts</dt>
            <dd>{counted(parts.length, 'span')}</dd>
          </div>
        )}
        {Object.entries(span.facts ?? {}).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
      {span.marks && (
        <ol class="marks">
          {span.marks.map((mark, index) => (
            <li key={index}>
              <span class="quiet">{preciseLength(Math.max(0, mark.time - start))}</span>{' '}
              {mark.status && <StatusMark status={mark.status} />} {mark.text}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
