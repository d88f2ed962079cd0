import type { StoryAnswer } from '../../api/types.ts';

/** Idle time is drawn as if it were no longer than this share of the story. */
const IDLE_SHARE = 0.06;

/** A story ready to be drawn: where everything lies, as numbers alone, so that a frame needs to look up nothing. */
export interface LanesLayout {
  readonly actors: readonly string[];
  /** Places are from 0 to 1, lanes are indices of `actors`. */
  readonly dots: { readonly x: Float64Array; readonly lane: Int32Array; readonly failed: Uint8Array };
  readonly seqs: readonly number[];
  readonly bars: Bars;
  readonly timers: Bars;
  /** From a cause to what it led to, between lanes. */
  readonly arrows: {
    readonly fromX: Float64Array;
    readonly fromLane: Int32Array;
    readonly toX: Float64Array;
    readonly toLane: Int32Array;
    /** Indices of the two records in `seqs`. */
    readonly from: Int32Array;
    readonly to: Int32Array;
  };
  readonly gaps: readonly { readonly x: number; readonly ms: number }[];
}

/** What takes time: from one place to another. */
export interface Bars {
  readonly fromX: Float64Array;
  readonly toX: Float64Array;
  readonly lane: Int32Array;
  readonly failed: Uint8Array;
}

/** Places moments so that long idle time takes little room, and what happens at once is still told apart. */
export function layOut({ records, spans }: Pick<StoryAnswer, 'records' | 'spans'>): LanesLayout {
  const actors = [...new Set(records.map(({ actor }) => actor))];
  const lanes = new Map(actors.map((actor, index) => [actor, index]));
  const laneOf = (actor: string): number => lanes.get(actor) ?? 0;
  const { place, gaps } = timeScale([
    ...records.map(({ time }) => time),
    ...spans.flatMap(({ asked, ended }) => [asked, ended ?? asked]),
  ]);
  const end = records.at(-1)?.time ?? 0;
  const bars = (kind: 'effect' | 'timer'): Bars => {
    const own = spans.filter((span) => span.kind === kind);
    return {
      fromX: Float64Array.from(own, ({ asked }) => place(asked)),
      toX: Float64Array.from(own, ({ ended, due }) => place(ended ?? Math.max(end, due ?? 0))),
      lane: Int32Array.from(own, ({ actor }) => laneOf(actor)),
      failed: Uint8Array.from(own, ({ outcome }) => Number(outcome === 'failed' || outcome === 'lost')),
    };
  };
  const x = Float64Array.from(records, ({ time }) => place(time));
  const lane = Int32Array.from(records, ({ actor }) => laneOf(actor));
  const indexOf = new Map(records.map(({ seq }, index) => [seq, index]));
  const led = records.flatMap(({ cause }, to) => {
    const from = cause === undefined ? undefined : indexOf.get(cause);
    return from === undefined || lane[from] === lane[to] ? [] : [{ from, to }];
  });
  return {
    actors,
    dots: { x, lane, failed: Uint8Array.from(records, ({ failed }) => Number(failed)) },
    seqs: records.map(({ seq }) => seq),
    bars: bars('effect'),
    timers: bars('timer'),
    arrows: {
      fromX: Float64Array.from(led, ({ from }) => x[from] ?? 0),
      fromLane: Int32Array.from(led, ({ from }) => lane[from] ?? 0),
      toX: Float64Array.from(led, ({ to }) => x[to] ?? 0),
      toLane: Int32Array.from(led, ({ to }) => lane[to] ?? 0),
      from: Int32Array.from(led, ({ from }) => from),
      to: Int32Array.from(led, ({ to }) => to),
    },
    gaps: gaps.map(({ from, ms }) => ({ x: place(from), ms })),
  };
}

/** @returns where a moment lies, 0 to 1, and the idle times that are drawn shorter than they were */
function timeScale(moments: readonly number[]) {
  const times = Float64Array.from(moments).sort();
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const most = Math.max(1, Math.max(1, last - first) * IDLE_SHARE);
  const gaps: { from: number; ms: number }[] = [];
  const places = new Float64Array(times.length);
  for (let index = 1; index < times.length; index += 1) {
    const before = times[index - 1] ?? 0;
    const step = (times[index] ?? 0) - before;
    if (step > most) gaps.push({ from: before, ms: step });
    places[index] = (places[index - 1] ?? 0) + Math.min(step, most);
  }
  const whole = Math.max(1, places.at(-1) ?? 0);
  const place = (time: number): number => {
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((times[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    const [after, x = whole] = [times[low], places[low]];
    const [before, beforeX = 0] = [times[low - 1], places[low - 1]];
    if (after === undefined || before === undefined || after === time) return x / whole;
    return (beforeX + ((time - before) / (after - before)) * (x - beforeX)) / whole;
  };
  return { place, gaps };
}
