import type { Route } from '../routes/route.ts';
import { UpstreamFault } from './faults.ts';
import { finder } from './find.ts';

/** An upstream that repeats the gateway's own credential in its answer. */
export class CredentialRepeated extends UpstreamFault {}

/**
 * Looks for the token of an overwrite route in what comes back: whoever holds a key must not get to see it. One that an
 * upstream hides on purpose is not found.
 *
 * @returns a look at the next part of an answer, which throws CredentialRepeated; also when two parts hold a half each
 */
export function credentialWatch({ entry, credential }: Route): (part: Buffer) => void {
  const token = entry.disposition === 'overwrite' ? credential(undefined).authorization : undefined;
  const secret = Buffer.from(token?.replace(/^Bearer /, '') ?? '');
  if (secret.length === 0) return () => undefined;
  const repeats = finder([secret]);
  return (part) => {
    if (repeats(part)) throw new CredentialRepeated();
  };
}
