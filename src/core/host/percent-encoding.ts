/** Of visible ASCII and the space: what is beyond says nothing to whoever looks for a name or a key, and may hide much. */
const ENCODED = /%([2-6][\da-f]|7[\da-e])/gi;

/**
 * A text without the percent-encoding (RFC 3986) of its visible ASCII, taken off once. Anything else stays as it is, a
 * malformed part as well.
 *
 * @param text of any length; takes time linear in it
 */
export function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(ENCODED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** So often it is taken off where somebody may have put it on: a link in a link. */
export const MOST_DECODED = 2;
