import { useCallback } from 'preact/hooks';
import type { DensityAnswer, RecordAtTimeAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { at } from '../location.ts';
import { counted } from '../text.tsx';
import { Canvas, colours } from './canvas.tsx';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Records of the last hour before the moment, a bar for each minute. @param end the moment, milliseconds */
export function RateChart({ end }: { end: number }) {
  const from = useAnswer<RecordAtTimeAnswer>('/api/records/at', {
    time: Math.max(0, Math.floor(end / MINUTE) * MINUTE - HOUR), // asked anew once a minute
  });
  const { data } = useAnswer<DensityAnswer>(from.data && '/api/density', {
    buckets: 60,
    from: from.data?.seq,
    to: at.value,
  });
  const buckets = data?.buckets ?? [];
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const colour = colours(context.canvas);
      const most = Math.max(1, ...buckets.map(({ records }) => records));
      const wide = width / Math.max(1, buckets.length);
      for (const [index, { records, failed = 0 }] of buckets.entries()) {
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
  const failed = buckets.reduce((sum, one) => sum + (one.failed ?? 0), 0);
  const text = `${counted(total, 'record')} in the last hour, ${failed} of them failed`;
  return (
    <figure>
      <Canvas draw={draw} height={48} label={text} />
      <figcaption class="quiet">{text}</figcaption>
    </figure>
  );
}
