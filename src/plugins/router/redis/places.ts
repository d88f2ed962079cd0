/**
 * Where a router keeps what is its own in Redis. Daemons, apps and scripts of others read these places, so they are
 * not ours to choose; `docs/guides/config-in-redis.md` describes them.
 */

/** The index that holds the router's config when the URL names none. */
export const CONFIG_DATABASE = 1;
/** The active config as plain JSON. */
export const CONFIG_KEY = 'sysdb:networkConfig';
/** Where a daemon keeps the config of a transaction that is neither committed nor reverted. */
export const PENDING_KEY = 'sysdb:transaction:networkConfig';

export const HISTORY_DATABASE = 0;
/** A sorted set of the accepted writes. */
export const HISTORY_KEY = 'history:networkConfig';
