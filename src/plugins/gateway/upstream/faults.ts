/** Something that an upstream does wrong, as we found it ourselves. */
export class UpstreamFault extends Error {}

/** Of errors by which Node and undici refuse what we ask of them. */
const MISUSE = /^(?:UND_ERR_(?:INVALID|NOT_SUPPORTED)|ERR_(?:INVALID|HTTP|METHOD|MISSING|ASSERTION))/;
/** Of errors that come without a code. */
const FOREIGN = /^(?:HTTPParserError|TimeoutError|AbortError)$/;

/**
 * Whether an error is our own: nobody may be told that an upstream broke off when a line of ours did. Whatever the
 * connection makes has a code, by which it is known.
 */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof UpstreamFault) return false;
  const { name = '', code } = (error ?? {}) as { name?: string; code?: unknown };
  if (FOREIGN.test(name)) return false;
  return typeof code !== 'string' || MISUSE.test(code);
}
