import { useCallback, useState } from 'preact/hooks';
import type { Bucket } from '../../api/types.ts';
import { drawDensity, seqAt, shareOf } from '../density.ts';
import { log, newest } from '../live.ts';
import { change, zoom } from '../location.ts';
import { counted, duration, shortTime } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';

const HEIGHT = 16;
/** A key moves an end by this share of the log. */
const STEP = 0.02;
/** A drag shorter than this is a click, which shows all: share of the width. */
const CLICK = 0.005;

/** Zooms into a part of the log. Its ends stand in the address. */
export function zoomTo(from: number | undefined, to: number | undefined): void {
  const first = log.value?.first ?? 1;
  change({
    from: from !== undefined && from > first ? from : undefined,
    // An end at the newest record stays open, so that what comes is seen.
    to: to !== undefined && to < newest.value ? to : undefined,
  });
}

/** The density of the whole log, with the part of it that is zoomed: drawn over by the mouse, its ends moved by keys. */
export function Brush({ buckets }: { buckets: readonly Bucket[] }) {
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number } | undefined>(undefined);
  const { from, to } = zoom.value;
  const isZoomed = from !== undefined || to !== undefined;
  const left = drag ? Math.min(drag.from, drag.to) : from === undefined ? 0 : shareOf(buckets, from);
  const right = drag ? Math.max(drag.from, drag.to) : to === undefined ? 1 : shareOf(buckets, to);
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) =>
      drawDensity(buckets, context, { width, height, colour: colours(context.canvas) }),
    [buckets],
  );
  const point = (type: 'down' | 'move' | 'up', x: number, width: number) => {
    const share = Math.min(1, Math.max(0, x / width));
    if (type === 'down') setDrag({ from: share, to: share });
    if (!drag) return;
    setDrag({ ...drag, to: share });
    if (type !== 'up') return;
    setDrag(undefined);
    const [low, high] = [Math.min(drag.from, share), Math.max(drag.from, share)];
    if (high - low < CLICK) zoomTo(undefined, undefined);
    else zoomTo(seqAt(buckets, low), seqAt(buckets, high));
  };
  const onKey = (end: 'from' | 'to') => (event: KeyboardEvent) => {
    const place = end === 'from' ? left : right;
    const moved: Record<string, number> = {
      ArrowLeft: place - STEP,
      ArrowRight: place + STEP,
      Home: 0,
      End: 1,
    };
    const share = moved[event.key];
    if (share === undefined) return;
    event.preventDefault();
    if (end === 'from') zoomTo(seqAt(buckets, Math.min(Math.max(0, share), right - STEP)), to);
    else zoomTo(from, seqAt(buckets, Math.max(Math.min(1, share), left + STEP)));
  };
  const percent = (share: number) => `${Math.min(100, Math.max(0, share * 100))}%`;
  const thumb = (end: 'from' | 'to') => {
    const seq = end === 'from' ? (from ?? log.value?.first ?? 1) : (to ?? newest.value);
    return (
      <div
        class="thumb"
        role="slider"
        tabIndex={0}
        aria-label={end === 'from' ? 'Zoom from' : 'Zoom to'}
        aria-valuemin={log.value?.first ?? 0}
        aria-valuemax={newest.value}
        aria-valuenow={seq}
        aria-valuetext={`record ${seq}`}
        style={{ left: percent(end === 'from' ? left : right) }}
        onKeyDown={onKey(end)}
      />
    );
  };
  return (
    <div class={isZoomed || drag ? 'brush zoomed' : 'brush'}>
      <Canvas
        draw={draw}
        height={HEIGHT}
        label="The whole log; draw over a part of it to zoom"
        onPointer={point}
      />
      <div class="shade" style={{ left: 0, width: percent(left) }} />
      <div class="shade" style={{ left: percent(right), right: 0 }} />
      {thumb('from')}
      {thumb('to')}
    </div>
  );
}

/** Which part is zoomed, in words, and the way back. */
export function ZoomText({ buckets }: { buckets: readonly Bucket[] }) {
  const { from, to } = zoom.value;
  if (from === undefined && to === undefined) return null;
  const [low, high] = [from ?? log.value?.first ?? 1, to ?? newest.value];
  const [start, end] = [buckets[0]?.start, buckets.at(-1)?.end];
  return (
    <p class="zoom-text">
      <span>
        {counted(Math.max(0, high - low + 1), 'record')}, {low} to {to ?? 'now'}
        {start !== undefined && end !== undefined && `: ${duration(end - start)} from ${shortTime(start)}`}
      </span>
      <button type="button" onClick={() => zoomTo(undefined, undefined)} title="The whole log (f)">
        Whole log
      </button>
    </p>
  );
}
