/** What the host and other plugins know of the calls that the gateway decides. */

/** The actor type of a virtual key: it decides the calls that come with the key. */
export const VIRTUAL_KEY = 'gateway.key';

/**
 * The only actor types some of whose records may be `batched`, so that their effects precede the sync of the record: an
 * admitted call that cannot change anything is forwarded at once (C2).
 */
export const MAY_BE_BATCHED: ReadonlySet<string> = new Set([VIRTUAL_KEY]);

/** The server through which agents write into the columnar database: its calls are durable before they are forwarded (C2). */
export const COLUMNAR_WRITES = 'columnar_rw';
