import { stat } from 'node:fs/promises';

/** What there is to see of a file. Times are epoch milliseconds. */
export type Seen = { readonly modifiedAt: number } | { readonly unseen: string };

export interface Freshness {
  readonly fresh: boolean;
  /** One sentence for a person. */
  readonly text: string;
  /** Hours since, where it is known. */
  readonly ageHours?: number;
}

const HOUR = 3_600_000;
/** A file may be touched by a host whose clock is a little ahead, milliseconds. */
const AHEAD_MS = 300_000;

/** Looks at a file, or at what it links to. */
export async function see(file: string): Promise<Seen> {
  try {
    return { modifiedAt: (await stat(file)).mtimeMs };
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { unseen: 'there is no such file' };
    return { unseen: code === 'EACCES' ? 'it may not be looked at' : `it cannot be looked at (${code})` };
  }
}

/**
 * Whether a success is young enough. What cannot be seen is not fresh, nor is what claims to come from the future: a
 * clock that was wrong once would hide a dead job for as long as it was ahead.
 *
 * @param now epoch milliseconds
 */
export function judge(seen: Seen, name: string, mostMs: number, now: number): Freshness {
  if ('unseen' in seen) return { fresh: false, text: `No success of ${name} is known: ${seen.unseen}.` };
  const age = now - seen.modifiedAt;
  const ageHours = Math.round((age / HOUR) * 10) / 10;
  const at = new Date(seen.modifiedAt).toISOString();
  if (age < -AHEAD_MS) {
    const text = `The last success of ${name} claims to be at ${at}, which is in the future: a clock is wrong.`;
    return { fresh: false, ageHours, text };
  }
  const bound = mostMs / HOUR;
  if (age > mostMs) {
    const text = `No success of ${name} for more than ${bound} h: the last was ${ageHours} h ago, at ${at}.`;
    return { fresh: false, ageHours, text };
  }
  return { fresh: true, ageHours, text: `${name} succeeded ${ageHours} h ago, at ${at}.` };
}
