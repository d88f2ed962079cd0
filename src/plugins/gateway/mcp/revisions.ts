/** Protocol revisions that requests may name, oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

/** From this revision on there are no sessions: each request says all that it needs. */
export const STATELESS_SINCE = '2026-07-28';
/** The newest revision with sessions. */
export const NEWEST_SESSIONED = '2025-11-25';

export const isKnown = (revision: string): boolean => (REVISIONS as readonly string[]).includes(revision);
export const isStateless = (revision: string | undefined): boolean =>
  revision !== undefined && revision >= STATELESS_SINCE;
