import { useCallback } from 'preact/hooks';
import { shortTime } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';

interface Line {
  readonly name: string;
  /** Milliseconds since 1970, and the value then. */
  readonly points: readonly (readonly [number, number])[];
}

const HEIGHT = 120;
const COLOURS = ['accent', 'link', 'degraded', 'failing', 'quiet'] as const;

/** Values over time, one line a series; the newest value of each stands beside it as text. */
export function Series({
  series,
  unit = '',
}: {
  series: readonly Line[];
  unit?: string;
  form: 'lines' | 'bars';
}) {
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      const all = series.flatMap(({ points }) => points);
      const times = all.map(([time]) => time);
      const values = all.map(([, value]) => value);
      const [first, last] = [Math.min(...times), Math.max(...times)];
      const [low, high] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
      const x = (time: number) => ((time - first) / Math.max(1, last - first)) * (width - 4) + 2;
      const y = (value: number) => height - 3 - ((value - low) / (high - low)) * (height - 8);
      for (const [index, { points }] of series.entries()) {
        context.strokeStyle = colour(COLOURS[index % COLOURS.length] ?? 'accent');
        context.lineWidth = 1.5;
        context.beginPath();
        for (const [time, value] of points) context.lineTo(x(time), y(value));
        context.stroke();
      }
    },
    [series],
  );
  const words = series.map(({ name, points }) => {
    const last = points.at(-1);
    return last
      ? `${name}: ${last[1].toLocaleString()} ${unit} at ${shortTime(last[0])}`
      : `${name}: no value`;
  });
  return (
    <figure>
      <Canvas draw={draw} height={HEIGHT} label={words.join('; ')} />
      <figcaption class="quiet">{words.join(' · ')}</figcaption>
    </figure>
  );
}
