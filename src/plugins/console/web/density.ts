import type { Bucket } from '../api/types.ts';

/** The record that is at this place of the density. @param share 0 to 1 of its time */
export function seqAt(buckets: readonly Bucket[], share: number): number | undefined {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last) return undefined;
  const time = first.start + share * (last.end - first.start);
  const bucket = buckets.findLast(({ start }) => start <= time) ?? first;
  const within = (time - bucket.start) / Math.max(1, bucket.end - bucket.start);
  return Math.round(bucket.first + Math.min(1, within) * (bucket.last - bucket.first));
}

/** Where a record lies in the time of the density, 0 to 1. */
export function shareOf(buckets: readonly Bucket[], seq: number): number {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last) return 1;
  const bucket = buckets.findLast((one) => one.first <= seq) ?? first;
  const within = (seq - bucket.first) / Math.max(1, bucket.last - bucket.first);
  const time = bucket.start + Math.min(1, within) * (bucket.end - bucket.start);
  return (time - first.start) / Math.max(1, last.end - first.start);
}

/** Draws the density: a bar for each bucket, what failed of it in its own colour. */
export function drawDensity(
  buckets: readonly Bucket[],
  context: CanvasRenderingContext2D,
  { width, height, colour }: { width: number; height: number; colour: (name: string) => string },
): void {
  const most = Math.max(1, ...buckets.map(({ records }) => records));
  const first = buckets[0]?.start ?? 0;
  const span = Math.max(1, (buckets.at(-1)?.end ?? 1) - first);
  for (const bucket of buckets) {
    if (bucket.records === 0) continue;
    const x = ((bucket.start - first) / span) * width;
    const wide = Math.max(1, ((bucket.end - bucket.start) / span) * width - 0.5);
    // A single record has to be seen beside thousands: the height is of the logarithm.
    const tall = (Math.log1p(bucket.records) / Math.log1p(most)) * height;
    context.fillStyle = colour('bar');
    context.fillRect(x, height - tall, wide, tall);
    if (!bucket.failed) continue;
    context.fillStyle = colour('failing');
    context.fillRect(x, height - Math.max(3, (bucket.failed / bucket.records) * tall), wide, height);
  }
}
