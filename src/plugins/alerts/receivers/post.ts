import { createHash } from 'node:crypto';
import type { Queued } from '../../../machines/alerts/alert-shapes.ts';
import { type Posted, postOnce } from '../webhook/post-once.ts';
import { formats } from './formats.ts';
import type { Target } from './target.ts';

/**
 * Posts notices to a receiver, in its format.
 *
 * @param now epoch milliseconds
 */
export function post(
  { format, url, bearer }: Target,
  items: readonly Queued[],
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  return postOnce({ url, bearer, ...formats[format](items, keyOf(items)) }, now, signal);
}

/** The same for the same notices, however often and by whichever process they are posted; another in another data folder. */
export function keyOf(items: readonly Queued[]): string {
  const whole = items.map(({ id, at }) => `${id}@${at}`).join();
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
}
