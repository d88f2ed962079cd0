import { useCallback, useState } from 'preact/hooks';
import type { DensityAnswer, RecordAnswer } from '../api/types.ts';
import { useAnswer } from './answer.ts';
import { goToTime, step } from './commands.ts';
import { Brush, ZoomText } from './components/brush.tsx';
import { Canvas, colours } from './components/canvas.tsx';
import { drawDensity, seqAt, shareOf } from './density.ts';
import { connection, log, newest } from './live.ts';
import { address, at, travel, zoom } from './location.ts';
import { duration, shortTime, Time } from './text.tsx';

const BUCKETS = 240;
const HEIGHT = 34;

/** The whole log as one bar: where it is dense, where something failed, and the moment that is shown. */
export function TimeBar() {
  const whole = useAnswer<DensityAnswer>('/api/density', { buckets: BUCKETS });
  const { from, to } = zoom.value;
  const isZoomed = from !== undefined || to !== undefined;
  const part = useAnswer<DensityAnswer>(isZoomed ? '/api/density' : undefined, {
    ...{ buckets: BUCKETS, from, to },
  });
  const all = whole.data?.buckets ?? [];
  const buckets = isZoomed ? (part.data?.buckets ?? []) : all;
  const [drag, setDrag] = useState(false);
  const seq = at.value;
  const shown = seq ?? newest.value;

  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      drawDensity(buckets, context, { width, height, colour });
      const x = Math.min(width - 1, Math.max(1, shareOf(buckets, shown) * width));
      context.fillStyle = colour('accent');
      context.fillRect(x - 1, 0, 2, height);
    },
    [buckets, shown],
  );
  const move = (type: 'down' | 'move' | 'up', x: number, width: number) => {
    if (type !== 'move') setDrag(type === 'down');
    // The way up chooses nothing: beside the badge of another moment the bar has another width by then.
    if (type === 'up' || (type === 'move' && !drag)) return;
    const target = seqAt(buckets, Math.min(1, Math.max(0, x / width)));
    travel(target === undefined || target >= newest.value ? undefined : target);
  };
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, () => unknown> = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      Home: () => travel(log.value?.first),
      End: () => travel(undefined),
    };
    const run = steps[event.key];
    if (!run) return;
    event.preventDefault();
    void run();
  };
  const bucketOf = buckets.findLast(({ first }) => first <= shown);
  const time = bucketOf?.start;
  return (
    <search class="timebar" aria-label="Time">
      <div class="spans-log">
        <div
          class="bar"
          role="slider"
          tabIndex={0}
          aria-label="Moment"
          aria-valuemin={log.value?.first ?? 0}
          aria-valuemax={newest.value}
          aria-valuenow={shown}
          aria-valuetext={
            seq === undefined ? 'now' : `record ${seq}${time ? `, about ${shortTime(time)}` : ''}`
          }
          onKeyDown={onKey}
        >
          <Canvas
            draw={draw}
            height={HEIGHT}
            onPointer={move}
            label={`${newest.value.toLocaleString()} records${
              buckets.length > 1
                ? ` over ${duration((buckets.at(-1)?.end ?? 0) - (buckets[0]?.start ?? 0))}`
                : ''
            }`}
          />
        </div>
        <Brush buckets={all} />
        <ZoomText buckets={buckets} />
      </div>
      <Moment />
    </search>
  );
}

/** Which moment is shown, and the ways to another. */
function Moment() {
  const seq = at.value;
  const detail = useAnswer<RecordAnswer>(seq === undefined ? undefined : `/api/records/${seq}`, {}, 'fixed');
  return (
    <div class="moment">
      <button
        type="button"
        onClick={() => void step(-1)}
        title="Previous record (k)"
        aria-label="Previous record"
      >
        ◂
      </button>
      <button
        type="button"
        onClick={() => void step(1)}
        title="Next record (j)"
        aria-label="Next record"
        disabled={seq === undefined}
      >
        ▸
      </button>
      {seq === undefined ? (
        <span class={`badge ${connection.value}`}>{CONNECTIONS[connection.value]}</span>
      ) : (
        <span class="badge past linked" role="status">
          as of record <a href={address(`/records/${seq}`, { at: seq })}>{seq}</a>
          {detail.data?.row && (
            <>
              , <Time ms={detail.data.row.time} millis />
            </>
          )}
        </span>
      )}
      {seq !== undefined && (
        <button type="button" class="now" onClick={() => travel(undefined)} title="Back to now (l)">
          {log.value?.mode === 'live' ? 'Now' : 'End'}
        </button>
      )}
      <label class="typed">
        <span class="hidden">Go to a time</span>
        <input
          type="datetime-local"
          step="1"
          title="Go to a time"
          onChange={(event) => void goToTime(event.currentTarget.value)}
        />
      </label>
    </div>
  );
}

const CONNECTIONS = {
  connecting: 'connecting …',
  live: 'now, live',
  lost: 'connection lost: trying again',
  ended: 'logged out',
  file: 'end of this log',
} as const;
