import type { UptimeMonitor } from '../../../core/contracts/uptime.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';

/** One beat out of turn, for the check of a deployment. */
export interface Trial {
  readonly place: string;
  readonly monitor: string;
  readonly token: { readonly ok: true } | { readonly ok: false; readonly reason: string };
  readonly push:
    | { readonly kind: 'delivered'; readonly status: number }
    | { readonly kind: 'failed'; readonly status?: number; readonly reason: string }
    | { readonly kind: 'none'; readonly reason: string };
}

/** @param down why no beat may be sent: one that says up would be a lie */
export async function tryBeat(
  receiver: UptimeMonitor | undefined,
  monitor: string,
  down: string | undefined,
): Promise<Trial> {
  const place = receiver?.place ?? 'nowhere';
  const none = (reason: string) =>
    ({ place, monitor, token: { ok: true }, push: { kind: 'none', reason } }) as const;
  if (!receiver) return none('no plugin sends beats');
  if (down !== undefined) return none(down);
  try {
    const answer = await receiver.push(monitor, { status: 'up', msg: 'checked by holdfast deploy ula' });
    if (answer.kind === 'delivered') return { place, monitor, token: { ok: true }, push: answer };
    const push =
      answer.kind === 'refused'
        ? {
            kind: 'failed' as const,
            status: answer.status,
            reason: `HTTP ${answer.status}: ${answer.msg ?? answer.body}`,
          }
        : { kind: 'failed' as const, reason: answer.reason };
    return { place, monitor, token: { ok: true }, push };
  } catch (error) {
    if (!isCoded(error, 'HF_UPTIME_TOKEN')) throw error;
    const reason = error.what;
    return { place, monitor, token: { ok: false, reason }, push: { kind: 'none', reason } };
  }
}
