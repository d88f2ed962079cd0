/**
 * Why an upstream takes no part in an answer of the aggregate, in the gateway's own words: the upstream's could hold a
 * credential.
 */
import { UpstreamFault } from '../fast-path/upstream-request.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Route } from '../routes/route.ts';
import { isLate, isOwnFault } from '../upstream/failures.ts';
import { CredentialRepeated } from '../upstream/inspection.ts';

/** An upstream that took no part in an answer, and why. */
export interface Missing {
  readonly server: string;
  readonly reason: string;
}

/** An upstream that can't be asked; its message says why. */
export class Unavailable extends UpstreamFault {}

/** The reason of an upstream that was given up because it took too long. */
export const TOO_LATE = 'does not answer in time';

/** @returns why an upstream that was asked takes no part */
export function whyNot(error: unknown): string {
  if (error instanceof Unavailable) return error.message;
  if (error instanceof CredentialRepeated) return 'repeats the credential of the gateway';
  if (isLate(error)) return TOO_LATE;
  const { name } = error as { name?: string };
  if (name === 'RangeError') return 'answers more than can be held';
  return isOwnFault(error) ? 'could not be asked: the gateway failed' : 'cannot be reached';
}

/** The text for a caller who brings no token of its own to a relay route. */
export const identityWanted = (server: string): string =>
  `${server} wants your own access token in Authorization. Log in at /${server}/mcp, or send it with the call.`;

/** @returns why a server that the key may reach can't be asked */
export function whyUnusable(
  { name, reason, url, needsIdentity }: Route,
  { authorization }: AuthenticatedKey,
): string | undefined {
  if (reason !== undefined || !url) return `is ${reason ?? 'not configured'}`;
  return needsIdentity && authorization !== 'bearer' ? identityWanted(name) : undefined;
}
