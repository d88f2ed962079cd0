import { createHash } from 'node:crypto';
import type { Services } from '../../core/host/plugin/definition.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { Queued } from '../../machines/alerts/alert.ts';
import type { OutboxContext } from '../../machines/alerts/outbox.ts';
import { formats } from './payloads.ts';
import { OUTBOX_ACTOR } from './raised.ts';
import type { Receiver, Target } from './receivers.ts';
import { type Posted, postOnce } from './webhook.ts';

/** How long a receiver's outbox waits for more, as its machine takes it; the machine has a default of its own. */
export function gatherOf(receiver: Receiver | undefined): { readonly gatherMs?: number } {
  return receiver === undefined ? {} : { gatherMs: Math.round(receiver.gather * 1_000) };
}

/** At a start: outboxes that are there already learn of a changed configuration. */
export function gatherAsConfigured(
  receivers: Readonly<Record<string, Receiver>>,
  { actors }: Pick<Services, 'actors'>,
): void {
  for (const [name, receiver] of Object.entries(receivers)) {
    const ref = actorRef(OUTBOX_ACTOR, name);
    const known = actors.snapshot(ref)?.context as unknown as OutboxContext | undefined;
    const { gatherMs = 0 } = gatherOf(receiver);
    if (known && known.gatherMs !== gatherMs) actors.send(ref, { type: 'CONFIGURE', gatherMs });
  }
}

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
