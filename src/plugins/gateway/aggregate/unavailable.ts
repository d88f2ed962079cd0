import { CredentialRepeated } from '../upstream/credential.ts';
import { isOwnFault, UpstreamFault } from '../upstream/faults.ts';

/** Why an upstream takes no part, in words that hold nothing of its own. */
export class Unavailable extends UpstreamFault {}

/** @returns the same of any error, none of its own words in it */
export function whyNot(error: unknown): string {
  if (error instanceof Unavailable) return error.message;
  if (error instanceof CredentialRepeated) return 'repeats the credential of the gateway';
  const { name, code } = error as { name?: string; code?: string };
  if (name === 'TimeoutError' || code === 'UND_ERR_HEADERS_TIMEOUT') return 'does not answer in time';
  if (name === 'RangeError') return 'answers more than can be held';
  return isOwnFault(error) ? 'could not be asked: the gateway failed' : 'cannot be reached';
}
