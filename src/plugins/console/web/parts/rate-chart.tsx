import { useCallback } from 'preact/hooks';
import { useAnswer } from '../answer.ts';
import { at } from '../location.ts';
import type { Bucket } from '../model.ts';
import { counted } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';

const HOUR = 3_600_000;

/** Records of the last hour before the moment, a bar for each minute. */
export function RateChart() {
  const { data } = useAnswer<{ buckets: Bucket[] }>('/api/density', {
    buckets: 60,
    last: HOUR,
    at: at.value,
  });
  const buckets = data?.buckets ?? [];
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      const most = Math.max(1, ...buckets.map(({ records }) => records));
      const wide = width / Math.max(1, buckets.length);
      for (const [index, { records, failed }] of buckets.entries()) {
        const tall = (records / most) * height;
        context.fillStyle = colour('bar');
        context.fillRect(index * wide, height - tall, Math.max(1, wide - 1), tall);
        context.fillStyle = colour('failing');
        context.fillRect(index * wide, height - (failed / most) * height, Math.max(1, wide - 1), height);
      }
    },
    [buckets],
  );
  const total = buckets.reduce((sum, { records }) => sum + records, 0);
  const failed = buckets.reduce((sum, one) => sum + one.failed, 0);
  const text = `${counted(total, 'record')} in the last hour, ${failed} of them failed`;
  return (
    <figure>
      <Canvas draw={draw} height={48} label={text} />
      <figcaption class="quiet">{text}</figcaption>
    </figure>
  );
}
