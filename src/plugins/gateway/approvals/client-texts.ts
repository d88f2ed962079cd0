/** What a client reads while its call waits for a person, and where it is not made. */
import { maskText } from '../../../core/host/logging/mask-text.ts';
import type { ActorSnapshot } from '../../../core/kernel/actors/transition.ts';
import type { approval } from '../../../machines/gateway/approval.ts';
import { type Message, messageEvent } from '../mcp/message.ts';

/** @returns the token by which a client asked for progress; undefined where it did not */
export function progressTokenOf({ body }: Message): unknown {
  const { _meta } = (body.params ?? {}) as { _meta?: { progressToken?: unknown } };
  return _meta?.progressToken;
}

/**
 * Progress must grow, and that of the upstream begins at 0 or above: so it is the seconds that are left, below zero.
 *
 * @param left seconds
 */
export function progressEvent(progressToken: unknown, id: string, left: number): string {
  const message = `Waits for a person to approve it (${id}), for ${left} s more at most`;
  const params = { progressToken, progress: -Math.max(0, left), message };
  return messageEvent(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }));
}

export const TOO_MANY = {
  text: 'Too many calls wait for a person. Try again later.',
  refusal: 'too_many_waiting',
};
export const TOO_MANY_OF_KEY = {
  text: 'Too many calls of this key wait for a person, or were denied a short time ago. Try again later.',
  refusal: 'too_many_waiting',
};
export const TAKEN = [
  'The call was approved once, and another call that is the same took the approval. Call again to ask for another one.',
  'approval_taken',
] as const;

/** @returns what the client reads, and what the log says, of a request that a person denied, here or on another host */
export function denied(
  { by, why }: { readonly by: string; readonly why: string } = { by: 'a person', why: '' },
  id: string,
): readonly [text: string, refusal: string] {
  return [`The call was denied by ${by}: ${maskText(why, 500)} (${id}). Do not repeat it.`, 'denied'];
}

/** @returns what the client reads, and what the log says, of a request that is not approved */
export function whyNot(
  found: Pick<ActorSnapshot<typeof approval>, 'value' | 'context'> | undefined,
  id: string,
): readonly [text: string, refusal: string] {
  const { decision } = found?.context ?? {};
  switch (found?.value) {
    case 'denied':
      return denied(decision, id);
    case 'used':
      return TAKEN;
    case 'withdrawn':
      return [`The request for approval was withdrawn (${id}).`, 'withdrawn'];
    default:
      return [
        `Nobody approved the call in time, so it was not made (${id}). Call again to ask once more.`,
        'approval_expired',
      ];
  }
}
