import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import type { PageSection } from '../../api/types.ts';
import { shortTime } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';
import { ticksOf, timeTicksOf } from './scale.ts';

type Chart = Extract<PageSection, { kind: 'chart' }>;
type Line = Chart['series'][number];

const HEIGHTS = { lines: 170, bars: 120 };
/** Pixels around the drawing: for the values, for the times, and for the last label. */
const LEFT = 52;
const BOTTOM = 20;
const TOP = 6;
const RIGHT = 10;

const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

/** The name of a colour in the style sheet; a status has its own, and what nobody judged a quiet one. */
export function colourOf({ status }: Pick<Line, 'status'>, index: number): string {
  return status === 'unknown' ? 'bar' : (status ?? `series-${(index % 8) + 1}`);
}

interface Scale {
  /** Every time that has a value, rising. */
  readonly times: readonly number[];
  readonly from: number;
  readonly to: number;
  readonly low: number;
  readonly high: number;
  /** How long a bar stands for, milliseconds. */
  readonly step: number;
  /** By series: its value at a time. */
  readonly values: readonly ReadonlyMap<number, number>[];
}

function scaleOf(series: readonly Line[], form: 'lines' | 'bars'): Scale | undefined {
  const values = series.map(({ points }) => new Map(points.map(([time, value]) => [time, value])));
  const times = [...new Set(values.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
  const [from, to] = [times[0], times.at(-1)];
  if (from === undefined || to === undefined) return undefined;
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
  const step = Math.max(
    1,
    gaps.reduce((least, gap) => Math.min(least, gap), Number.POSITIVE_INFINITY),
  );
  const heights =
    form === 'bars'
      ? times.map((time) => values.reduce((sum, one) => sum + Math.max(0, one.get(time) ?? 0), 0))
      : values.flatMap((one) => [...one.values()]);
  const low = heights.reduce((least, value) => Math.min(least, value), 0);
  const high = heights.reduce((most, value) => Math.max(most, value), low);
  return {
    times,
    from,
    to: form === 'bars' ? to + (Number.isFinite(step) ? step : 1) : to,
    low,
    high: high > low ? high : low + 1,
    step,
    values,
  };
}

/** Values over time, as lines or as bars on each other: with axes, and the values where one points or goes by keys. */
export function Series({ series, unit = '', form = 'lines' }: Omit<Chart, 'kind' | 'title'>) {
  const scale = useMemo(() => scaleOf(series, form), [series, form]);
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const box = useRef<HTMLFieldSetElement>(null);
  const x = (time: number, width: number) =>
    scale ? LEFT + ((time - scale.from) / Math.max(1, scale.to - scale.from)) * (width - LEFT - RIGHT) : 0;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      if (!scale) return;
      const colour = colours(context.canvas);
      const y = (value: number) =>
        height - BOTTOM - ((value - scale.low) / (scale.high - scale.low)) * (height - BOTTOM - TOP);
      axes(context, { width, height, scale, x, y, colour });
      for (const [index, line] of series.entries()) {
        const name = colour(colourOf(line, index));
        if (form === 'bars') bars(context, { scale, index, width, x, y, colour: name });
        else stroke(context, line, (time) => x(time, width), y, name);
      }
      const time = chosen === undefined ? undefined : scale.times[chosen];
      if (time === undefined) return;
      const at = x(time + (form === 'bars' ? scale.step / 2 : 0), width);
      context.strokeStyle = colour('text');
      context.setLineDash([3, 3]);
      context.beginPath();
      context.moveTo(at, TOP);
      context.lineTo(at, height - BOTTOM);
      context.stroke();
      context.setLineDash([]);
    },
    [series, scale, form, chosen],
  );
  if (!scale) return <p class="quiet">No value.</p>;
  const move = (steps: number) => {
    const last = scale.times.length - 1;
    setChosen(Math.min(last, Math.max(0, (chosen ?? (steps < 0 ? last + 1 : -1)) + steps)));
  };
  const point = (clientX: number) => {
    const area = box.current?.querySelector('canvas')?.getBoundingClientRect();
    if (!area) return;
    const time =
      scale.from + ((clientX - area.left - LEFT) / (area.width - LEFT - RIGHT)) * (scale.to - scale.from);
    setChosen(nearest(scale.times, form === 'bars' ? time - scale.step / 2 : time));
  };
  const time = chosen === undefined ? undefined : scale.times[chosen];
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    PageUp: () => move(-10),
    PageDown: () => move(10),
    Home: () => setChosen(0),
    End: () => setChosen(scale.times.length - 1),
    Escape: () => setChosen(undefined),
  };
  return (
    <figure class="series">
      <fieldset
        ref={box}
        class="plot"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: its values are read by the arrow keys
        tabIndex={0}
        aria-label="Values by the arrow keys"
        onPointerMove={(event) => point(event.clientX)}
        onPointerLeave={() => setChosen(undefined)}
        onKeyDown={(event) => {
          const key = keys[event.key];
          if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
          event.preventDefault();
          event.stopPropagation();
          key();
        }}
      >
        <Canvas draw={draw} height={HEIGHTS[form]} label={summary(series, unit, form)} />
      </fieldset>
      <figcaption class="legend" aria-live="polite">
        <span class="quiet">{time === undefined ? caption(form) : shortTime(time)}</span>
        {series.map((line, index) => (
          <span key={line.name} class="key">
            <span class={`swatch ${colourOf(line, index)}`} aria-hidden="true" /> {line.name}{' '}
            <strong>{shown(valueAt(scale, index, time, form), unit)}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

const caption = (form: 'lines' | 'bars'): string => (form === 'bars' ? 'in all' : 'newest');

/** The value at a time; without one the sum of bars, or the newest of a line. */
function valueAt({ values }: Scale, index: number, time: number | undefined, form: 'lines' | 'bars') {
  const own = values[index];
  if (time !== undefined) return own?.get(time);
  const all = [...(own?.values() ?? [])];
  return form === 'bars' ? all.reduce((sum, value) => sum + value, 0) : all.at(-1);
}

function shown(value: number | undefined, unit: string): string {
  if (value === undefined) return '–';
  const text = value.toLocaleString(undefined, { maximumSignificantDigits: 6 });
  return unit === '' ? text : `${text} ${unit}`;
}

/** What the picture says, for those who cannot see it. */
function summary(series: readonly Line[], unit: string, form: 'lines' | 'bars'): string {
  const each = series.map(({ name, points }) => {
    const values = points.map(([, value]) => value);
    const last = points.at(-1);
    if (!last) return `${name}: no value`;
    const most = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    const newest = `${shown(last[1], unit)} at ${shortTime(last[0])}`;
    const all = shown(
      values.reduce((a, b) => a + b, 0),
      unit,
    );
    return form === 'bars'
      ? `${name}: ${all} in all, at most ${shown(most, unit)}`
      : `${name}: ${newest}, at most ${shown(most, unit)}`;
  });
  return each.join('; ');
}

function nearest(times: readonly number[], wanted: number): number {
  let best = 0;
  for (const [index, time] of times.entries())
    if (Math.abs(time - wanted) < Math.abs((times[best] ?? 0) - wanted)) best = index;
  return best;
}

interface Area {
  readonly width: number;
  readonly height: number;
  readonly scale: Scale;
  readonly x: (time: number, width: number) => number;
  readonly y: (value: number) => number;
  readonly colour: (name: string) => string;
}

function axes(context: CanvasRenderingContext2D, { width, height, scale, x, y, colour }: Area): void {
  context.font = '11px system-ui, sans-serif';
  context.lineWidth = 1;
  context.strokeStyle = colour('line');
  context.fillStyle = colour('quiet');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const value of ticksOf(scale.low, scale.high, 4)) {
    const at = Math.round(y(value)) + 0.5;
    context.beginPath();
    context.moveTo(LEFT, at);
    context.lineTo(width - RIGHT, at);
    context.stroke();
    context.fillText(compact.format(value), LEFT - 6, at);
  }
  context.textAlign = 'center';
  context.textBaseline = 'alphabetic';
  for (const time of timeTicksOf(scale.from, scale.to, Math.max(2, Math.floor((width - LEFT) / 130)))) {
    const at = x(time, width);
    if (at > width - 30) continue;
    context.fillText(shortTime(time).replace(/:00$/, ''), Math.max(LEFT + 24, at), height - 5);
    context.beginPath();
    context.moveTo(at, height - BOTTOM);
    context.lineTo(at, height - BOTTOM + 4);
    context.stroke();
  }
}

function stroke(
  context: CanvasRenderingContext2D,
  { points }: Line,
  x: (time: number) => number,
  y: (value: number) => number,
  colour: string,
): void {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 1.75;
  context.beginPath();
  for (const [time, value] of points) context.lineTo(x(time), y(value));
  context.stroke();
  if (points.length > 60) return;
  for (const [time, value] of points) {
    context.beginPath();
    context.arc(x(time), y(value), 2.2, 0, 2 * Math.PI);
    context.fill();
  }
}

/** The bars of one series, on those of the series before it. */
function bars(
  context: CanvasRenderingContext2D,
  {
    scale,
    index,
    width,
    x,
    y,
    colour,
  }: Pick<Area, 'scale' | 'width' | 'x' | 'y'> & { index: number; colour: string },
): void {
  context.fillStyle = colour;
  const wide = Math.max(1, x(scale.from + scale.step, width) - x(scale.from, width) - 1);
  for (const time of scale.times) {
    const value = scale.values[index]?.get(time) ?? 0;
    if (value <= 0) continue;
    const below = scale.values.slice(0, index).reduce((sum, one) => sum + Math.max(0, one.get(time) ?? 0), 0);
    const top = y(below + value);
    context.fillRect(x(time, width), top, wide, Math.max(1, y(below) - top));
  }
}
