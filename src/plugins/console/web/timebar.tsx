import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Bucket, DensityAnswer, RecordAnswer } from '../api/types.ts';
import { useAnswer } from './answer.ts';
import { get } from './api.ts';
import { Canvas, colours } from './components/canvas.tsx';
import { addShortcuts } from './keys.ts';
import { connection, log, newest } from './live.ts';
import { address, at, travel } from './location.ts';
import { duration, shortTime, Time } from './text.tsx';

const BUCKETS = 240;
const HEIGHT = 34;

/** The record that is at this place of the density. */
function seqAt(buckets: readonly Bucket[], share: number): number | undefined {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last) return undefined;
  const time = first.start + share * (last.end - first.start);
  const bucket = buckets.findLast(({ start }) => start <= time) ?? first;
  const within = (time - bucket.start) / Math.max(1, bucket.end - bucket.start);
  return Math.round(bucket.first + Math.min(1, within) * (bucket.last - bucket.first));
}

/** Where a record lies on the bar, 0 to 1. */
function shareOf(buckets: readonly Bucket[], seq: number): number {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last) return 1;
  const bucket = buckets.findLast((one) => one.first <= seq) ?? first;
  const within = (seq - bucket.first) / Math.max(1, bucket.last - bucket.first);
  const time = bucket.start + Math.min(1, within) * (bucket.end - bucket.start);
  return (time - first.start) / Math.max(1, last.end - first.start);
}

/** Goes to the record before or after the one that is shown; of all, or of one actor. */
async function step(direction: 1 | -1): Promise<void> {
  const facts = log.value;
  if (!facts) return;
  const from = at.value ?? newest.value + 1;
  const to = from + direction;
  if (to < facts.first) return;
  travel(to > newest.value ? undefined : to);
}

/** Goes to the neighbour of the record that is shown, of the same actor. */
async function stepOfActor(direction: 1 | -1): Promise<void> {
  const seq = at.value ?? newest.value;
  const detail = await get<RecordAnswer>(`/api/records/${seq}`);
  const to = direction === 1 ? detail.nextOfActor : detail.previousOfActor;
  if (to !== undefined) travel(to);
}

async function goToTime(text: string): Promise<void> {
  const time = new Date(text).getTime();
  if (Number.isNaN(time)) return;
  const { seq } = await get<{ seq: number }>('/api/records/at', { time });
  travel(seq);
}

/** The whole log as one bar: where it is dense, where something failed, and the moment that is shown. */
export function TimeBar() {
  const { data } = useAnswer<DensityAnswer>('/api/density', { buckets: BUCKETS });
  const buckets = data?.buckets ?? [];
  const [drag, setDrag] = useState(false);
  const seq = at.value;
  const shown = seq ?? newest.value;

  useEffect(
    () =>
      addShortcuts([
        { keys: 'j', what: 'Next record', run: () => void step(1) },
        { keys: 'k', what: 'Previous record', run: () => void step(-1) },
        { keys: 'J', what: 'Next record of the same actor', run: () => void stepOfActor(1) },
        { keys: 'K', what: 'Previous record of the same actor', run: () => void stepOfActor(-1) },
        { keys: 'l', what: 'Back to now', run: () => travel(undefined) },
        { keys: 'g g', what: 'The beginning of the log', run: () => travel(log.value?.first) },
      ]),
    [],
  );

  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      const most = Math.max(1, ...buckets.map(({ records }) => records));
      const first = buckets[0]?.start ?? 0;
      const span = Math.max(1, (buckets.at(-1)?.end ?? 1) - first);
      for (const bucket of buckets) {
        if (bucket.records === 0) continue;
        const x = ((bucket.start - first) / span) * width;
        const wide = Math.max(1, ((bucket.end - bucket.start) / span) * width - 0.5);
        // A single record has to be seen beside thousands: the height is of the logarithm.
        const tall = (Math.log1p(bucket.records) / Math.log1p(most)) * (height - 6);
        context.fillStyle = colour('bar');
        context.fillRect(x, height - tall, wide, tall);
        if (!bucket.failed) continue;
        context.fillStyle = colour('failing');
        context.fillRect(x, height - Math.max(3, (bucket.failed / bucket.records) * tall), wide, height);
      }
      const x = Math.min(width - 1, Math.max(1, shareOf(buckets, shown) * width));
      context.fillStyle = colour('accent');
      context.fillRect(x - 1, 0, 2, height);
    },
    [buckets, shown],
  );
  const move = (type: 'down' | 'move' | 'up', x: number, width: number) => {
    if (type === 'down') setDrag(true);
    if (type === 'up') setDrag(false);
    if (type !== 'down' && !drag) return;
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
  file: 'end of this log',
} as const;
