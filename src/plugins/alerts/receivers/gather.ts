import type { Services } from '../../../core/host/plugin/definition.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type { OutboxContext } from '../../../machines/alerts/outbox-shapes.ts';
import { OUTBOX_ACTOR } from '../raised.ts';
import type { Receiver } from './target.ts';

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
