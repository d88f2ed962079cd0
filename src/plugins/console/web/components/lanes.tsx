import { useCallback, useMemo, useState } from 'preact/hooks';
import type { RecordRow, StoryAnswer } from '../../api/types.ts';
import { at, travel } from '../location.ts';
import { duration } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';

/** Pixels of one lane. */
const LANE = 26;
const AXIS = 20;
/** Pixels on the left for the names of actors. */
const NAMES = 190;
/** Idle time is drawn as if it were no longer than this share of the story. */
const IDLE_SHARE = 0.06;

interface Layout {
  readonly actors: readonly string[];
  /** Where a moment lies, 0 to 1. */
  readonly place: (time: number) => number;
  readonly gaps: readonly { readonly from: number; readonly ms: number }[];
}

/** Places moments so that long idle time takes little room, and what happens at once is still told apart. */
function layOut({ records, spans }: StoryAnswer): Layout {
  const actors = [...new Set(records.map(({ actor }) => actor))];
  const last = records.at(-1)?.time ?? 0;
  const times = [
    ...records.map(({ time }) => time),
    ...spans.flatMap(({ asked, ended }) => [asked, ended ?? asked]),
  ].toSorted((a, b) => a - b);
  const first = times[0] ?? 0;
  const span = Math.max(1, Math.max(last, times.at(-1) ?? 0) - first);
  const most = Math.max(1, span * IDLE_SHARE);
  const stops: { time: number; x: number }[] = [{ time: first, x: 0 }];
  const gaps: { from: number; ms: number }[] = [];
  let x = 0;
  for (const [index, time] of times.entries()) {
    const step = time - (times[index - 1] ?? first);
    if (step <= 0) continue;
    if (step > most) gaps.push({ from: times[index - 1] ?? first, ms: step });
    x += Math.min(step, most);
    stops.push({ time, x });
  }
  const whole = Math.max(1, x);
  const place = (time: number): number => {
    const after = stops.findIndex((stop) => stop.time >= time);
    const next = stops[after === -1 ? stops.length - 1 : after];
    const before = stops[Math.max(0, (after === -1 ? stops.length : after) - 1)];
    if (!next || !before || next.time === before.time) return (next?.x ?? 0) / whole;
    const share = (time - before.time) / (next.time - before.time);
    return (before.x + share * (next.x - before.x)) / whole;
  };
  return { actors, place, gaps };
}

/** A story as lanes, one an actor: records as points, causes as arrows, effects as bars, timers as dashed lines. */
export function Lanes({ story }: { story: StoryAnswer }) {
  const layout = useMemo(() => layOut(story), [story]);
  const [zoom, setZoom] = useState(1);
  const [shift, setShift] = useState(0);
  const { actors, place } = layout;
  const height = actors.length * LANE + AXIS;
  const shown = at.value;

  const xOf = useCallback(
    (time: number, width: number) => NAMES + 8 + (place(time) - shift) * zoom * (width - NAMES - 24),
    [place, shift, zoom],
  );
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number) => {
      const colour = colours(context.canvas);
      const yOf = (actor: string) => AXIS + actors.indexOf(actor) * LANE + LANE / 2;
      context.font = '12px system-ui, sans-serif';
      context.textBaseline = 'middle';
      context.save();
      context.beginPath();
      context.rect(NAMES, 0, width - NAMES, height);
      context.clip();
      for (const actor of actors) {
        context.fillStyle = colour('line');
        context.fillRect(NAMES, yOf(actor), width, 1);
      }
      const end = story.records.at(-1)?.time ?? 0;
      for (const { kind, actor, asked, due, ended, outcome } of story.spans) {
        const from = xOf(asked, width);
        const to = Math.max(from + 2, xOf(ended ?? Math.max(end, due ?? 0), width));
        if (kind === 'effect') {
          context.fillStyle = colour(outcome === undefined || outcome === 'done' ? 'span' : 'failing');
          context.fillRect(from, yOf(actor) - 5, to - from, 10);
          continue;
        }
        context.setLineDash([4, 3]);
        context.strokeStyle = colour('quiet');
        context.beginPath();
        context.moveTo(from, yOf(actor) + 8);
        context.lineTo(to, yOf(actor) + 8);
        context.stroke();
        context.setLineDash([]);
      }
      const bySeq = new Map(story.records.map((row) => [row.seq, row]));
      for (const row of story.records) {
        const cause = row.cause === undefined ? undefined : bySeq.get(row.cause);
        if (!cause || cause.actor === row.actor) continue;
        arrow(
          context,
          colour('quiet'),
          xOf(cause.time, width),
          yOf(cause.actor),
          xOf(row.time, width),
          yOf(row.actor),
        );
      }
      for (const row of story.records) {
        context.fillStyle = colour(row.failed ? 'failing' : 'accent');
        context.beginPath();
        context.arc(xOf(row.time, width), yOf(row.actor), row.seq === shown ? 6 : 3.5, 0, 7);
        context.fill();
        if (row.seq !== shown) continue;
        context.strokeStyle = colour('text');
        context.lineWidth = 2;
        context.stroke();
        context.lineWidth = 1;
      }
      context.fillStyle = colour('quiet');
      for (const { from, ms } of layout.gaps)
        context.fillText(`${duration(ms)} later`, xOf(from, width) + 6, AXIS / 2);
      context.restore();
      context.fillStyle = colour('text');
      for (const actor of actors) context.fillText(actor, 4, yOf(actor), NAMES - 12);
    },
    [actors, story, layout, xOf, shown, height],
  );

  const nearest = (x: number, width: number): RecordRow | undefined => {
    let best: RecordRow | undefined;
    for (const row of story.records) {
      if (!best || Math.abs(xOf(row.time, width) - x) < Math.abs(xOf(best.time, width) - x)) best = row;
    }
    return best;
  };
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, () => void> = {
      w: () => setZoom(Math.min(200, zoom * 1.5)),
      s: () => {
        setZoom(Math.max(1, zoom / 1.5));
        if (zoom <= 1.5) setShift(0);
      },
      a: () => setShift(Math.max(0, shift - 0.15 / zoom)),
      d: () => setShift(Math.min(1 - 1 / zoom, shift + 0.15 / zoom)),
      f: () => {
        setZoom(1);
        setShift(0);
      },
    };
    const run = steps[event.key];
    if (!run || event.ctrlKey) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };
  const failed = story.records.filter((row) => row.failed).length;
  return (
    <section
      class="lanes"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys zoom and move it
      tabIndex={0}
      aria-label="Lanes: w and s zoom, a and d move, f shows all"
      onKeyDown={onKey}
    >
      <Canvas
        draw={draw}
        height={height}
        label={`${actors.length} actors, ${story.records.length} records, ${failed} failed; the list below has all of them`}
        onPointer={(type, x, width) => {
          if (type !== 'down' || x < NAMES) return;
          const row = nearest(x, width);
          if (row) travel(row.seq);
        }}
      />
    </section>
  );
}

function arrow(
  context: CanvasRenderingContext2D,
  colour: string,
  fromX: number,
  fromY: number,
  toX: number,
  toY: number,
): void {
  const down = toY > fromY ? 1 : -1;
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(fromX, fromY + 4 * down);
  context.bezierCurveTo(fromX, (fromY + toY) / 2, toX, (fromY + toY) / 2, toX, toY - 5 * down);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY - 4 * down);
  context.lineTo(toX - 3, toY - 9 * down);
  context.lineTo(toX + 3, toY - 9 * down);
  context.fill();
}
