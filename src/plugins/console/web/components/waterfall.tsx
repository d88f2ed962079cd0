import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { addShortcuts } from '../keys.ts';
import { counted } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';
import { ticksOf } from './scale.ts';
import { SpanDetail, SpanRows } from './span-rows.tsx';
import {
  colourOf,
  openNodes,
  preciseLength,
  type Span,
  type SpanNode,
  type SpanTree,
  treeOf,
  type View,
} from './span-tree.ts';

/** Pixels of the overview. */
const OVERVIEW = 54;

/** Spans on one axis of time, each below the one that it is a part of: by mouse, by keys, and as text. */
export function Waterfall({ spans }: { spans: readonly Span[] }) {
  const tree = useMemo(() => treeOf(spans), [spans]);
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [zoomed, setZoomed] = useState<View | undefined>(undefined);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const rows = useMemo(() => openNodes(tree, folded), [tree, folded]);
  const whole = { from: tree.from, to: Math.max(tree.to, tree.from + 0.001) };
  const view = zoomed ?? whole;
  const at = rows.findIndex(({ key }) => key === chosen);
  const node = rows[at];

  const zoomTo = (next: View) => {
    const least = (whole.to - whole.from) / 100_000;
    const from = Math.max(whole.from, next.from);
    const to = Math.min(whole.to, Math.max(next.to, from + least));
    setZoomed(from <= whole.from && to >= whole.to ? undefined : { from, to });
  };
  const zoomToSpan = () => {
    if (!node) return;
    const { start, duration } = node.span;
    const around = Math.max(duration * 0.05, (whole.to - whole.from) / 1e4);
    zoomTo({ from: start - around, to: start + duration + around });
  };
  const fold = (key: string, isFolded: boolean) => {
    const next = new Set(folded);
    if (isFolded) next.add(key);
    else next.delete(key);
    setFolded(next);
  };
  /** Shows a span, also where it was folded away. */
  const reveal = (wanted: SpanNode | undefined) => {
    if (!wanted) return;
    const next = new Set(folded);
    for (let above = wanted.parent; above; above = above.parent) next.delete(above.key);
    setFolded(next);
    setChosen(wanted.key);
  };
  const nextFailed = (step: 1 | -1) => {
    const failed = tree.nodes.filter(({ span }) => span.status === 'failing');
    const now = tree.nodes.findIndex(({ key }) => key === chosen);
    const place = (one: SpanNode) => tree.nodes.indexOf(one);
    const next =
      step > 0 ? failed.find((one) => place(one) > now) : failed.findLast((one) => place(one) < now);
    reveal(next ?? (step > 0 ? failed[0] : failed.at(-1)));
  };
  const act = { zoomToSpan, nextFailed, whole: () => setZoomed(undefined) };
  const acts = useRef(act);
  acts.current = act;
  useEffect(
    () =>
      addShortcuts([
        { keys: 'n', what: 'Next failed span', run: () => acts.current.nextFailed(1) },
        { keys: 'N', what: 'Failed span before', run: () => acts.current.nextFailed(-1) },
        { keys: 'z', what: 'Zoom to the chosen span', run: () => acts.current.zoomToSpan() },
        { keys: '0', what: 'Show the whole trace', run: () => acts.current.whole() },
      ]),
    [],
  );
  if (spans.length === 0) return <p class="quiet">None.</p>;
  const canFold = tree.nodes.filter(({ parts, parent }) => parts.length > 0 && parent);
  return (
    <div class="waterfall">
      <Overview tree={tree} view={view} onView={zoomTo} />
      <div class="actions">
        {tree.failed > 0 && (
          <button type="button" onClick={() => reveal(tree.origins[0])}>
            <span class="status failing">✕</span> {counted(tree.failed, 'span')} failed: go to where it began
          </button>
        )}
        <button type="button" disabled={!node} onClick={zoomToSpan}>
          Zoom to span
        </button>
        <button type="button" disabled={!zoomed} onClick={() => setZoomed(undefined)}>
          Whole trace
        </button>
        {canFold.length > 0 && (
          <button
            type="button"
            onClick={() => setFolded(folded.size > 0 ? new Set() : new Set(canFold.map(({ key }) => key)))}
          >
            {folded.size > 0 ? 'Unfold all' : 'Fold all'}
          </button>
        )}
      </div>
      <Services tree={tree} />
      <Axis view={view} start={tree.from} />
      <SpanRows {...{ tree, rows, view, folded, at, fold, zoomToSpan }} choose={setChosen} onView={zoomTo} />
      {node ? (
        <SpanDetail node={node} start={tree.from} />
      ) : (
        <p class="quiet">
          Choose a span to see what is known of it. Arrow keys go along and fold, <kbd>n</kbd> goes to the
          next one that failed, <kbd>z</kbd> zooms to it, <kbd>0</kbd> shows the whole trace.
        </p>
      )}
    </div>
  );
}

function Services({ tree }: { tree: SpanTree }) {
  return (
    <p class="legend">
      {[...tree.services].map(([name, count]) => (
        <span key={name} class="key">
          <span class={`swatch ${colourOf(tree, name)}`} aria-hidden="true" /> {name} <strong>{count}</strong>
        </span>
      ))}
    </p>
  );
}

/** All spans as thin lines; drawing over it zooms. */
function Overview({ tree, view, onView }: { tree: SpanTree; view: View; onView: (view: View) => void }) {
  const dragged = useRef<number | undefined>(undefined);
  const length = Math.max(tree.to - tree.from, 0.001);
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      const x = (time: number) => ((time - tree.from) / length) * width;
      const thick = Math.max(1, Math.min(6, height / tree.nodes.length));
      const lines = [...tree.nodes.entries()];
      const isFailed = ([, { span }]: (typeof lines)[number]) => span.status === 'failing';
      // Failures lie on top of what else is drawn on their pixels.
      for (const [index, { span }] of [...lines.filter((one) => !isFailed(one)), ...lines.filter(isFailed)]) {
        const y = Math.round((index / tree.nodes.length) * (height - thick));
        context.fillStyle = colour(span.status === 'failing' ? 'failing' : colourOf(tree, span.by));
        context.fillRect(x(span.start), y, Math.max(1, x(span.start + span.duration) - x(span.start)), thick);
      }
      context.globalAlpha = 0.35;
      context.fillStyle = colour('quiet');
      context.fillRect(0, 0, x(view.from), height);
      context.fillRect(x(view.to), 0, width - x(view.to), height);
      context.globalAlpha = 1;
    },
    [tree, view.from, view.to, length],
  );
  const label = `${counted(tree.nodes.length, 'span')} in ${preciseLength(length)}; ${tree.failed === 0 ? 'none' : tree.failed} failed. Shown from ${preciseLength(view.from - tree.from)} to ${preciseLength(view.to - tree.from)}.`;
  return (
    <Canvas
      draw={draw}
      height={OVERVIEW}
      label={label}
      onPointer={(type, x, width) => {
        const time = tree.from + Math.min(1, Math.max(0, x / width)) * length;
        if (type === 'down') dragged.current = time;
        if (type !== 'up' || dragged.current === undefined) return;
        const [from, to] = [Math.min(dragged.current, time), Math.max(dragged.current, time)];
        dragged.current = undefined;
        // A mere click shows everything again.
        onView((to - from) / length < 0.005 ? { from: tree.from, to: tree.to } : { from, to });
      }}
    />
  );
}

function Axis({ view, start }: { view: View; start: number }) {
  const span = view.to - view.from;
  return (
    <div class="span-axis" aria-hidden="true">
      <span />
      <span class="span-ticks">
        {ticksOf(view.from - start, view.to - start, 5).map((offset) => (
          <span key={offset} style={{ insetInlineStart: `${((offset + start - view.from) / span) * 100}%` }}>
            {preciseLength(offset)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}
