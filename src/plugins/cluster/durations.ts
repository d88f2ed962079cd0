/** Without a proof for longer, a host is cut off; unheard for longer, it is silent. Milliseconds. */
export const SILENT_MS = 2_000;
/** Unheard for longer, a host is gone and does not count. Milliseconds. */
export const GONE_MS = 10_000;
/** A server that is cut off answers from what it has for some 13 s; what is so for longer is lost. Milliseconds. */
export const CERTAIN_MS = 30_000;
