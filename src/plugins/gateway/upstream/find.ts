/**
 * Looks for some byte strings in what comes in parts, by a native search, also where two parts hold a half each.
 *
 * @returns whether the next part, or the seam before it, holds one of them
 */
export function finder(wanted: readonly Buffer[]): (part: Buffer) => boolean {
  const kept = Math.max(...wanted.map(({ length }) => length)) - 1;
  const holds = (bytes: Buffer) => wanted.some((one) => bytes.includes(one));
  let end: Buffer = Buffer.alloc(0);
  return (part) => {
    const found = holds(part) || (end.length > 0 && holds(Buffer.concat([end, part.subarray(0, kept)])));
    const last = part.length < kept ? Buffer.concat([end, part]) : part;
    end = last.subarray(Math.max(0, last.length - kept));
    return found;
  };
}
