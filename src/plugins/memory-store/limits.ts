/**
 * Limits of the embedded store; anything beyond is refused, never cut. docs/memory.md lists them.
 */

/** Bytes of a request that is not an upload. */
export const BODY_LIMIT = 16 * 1024 * 1024;
/** Numbers in a vector. */
export const LARGEST_VECTOR = 4_096;
export const MOST_COLLECTIONS = 64;
export const MOST_POINTS = 1_000_000;
/** Points that one request may name, and one page or search may give. */
export const MOST_PER_REQUEST = 10_000;
/** Bytes of one point's payload as JSON, in a write and in a snapshot. */
export const LARGEST_PAYLOAD = 8 * 1024 * 1024;
/** Levels of a request, and of a payload in a snapshot. */
export const DEEPEST = 64;
/** Bytes of points in one page, unless one point alone has more; the page then ends early and says where the next begins. */
export const LARGEST_PAGE = 8 * 1024 * 1024;
/** Bytes of points in any other answer; a larger one is refused. */
export const LARGEST_ANSWER = 32 * 1024 * 1024;
/** Bytes of vectors that are kept in memory for searches; a larger collection is read from disk at each. */
export const LARGEST_CACHE = 32 * 1024 * 1024;
/** Points, and bytes of their payloads, that are read at once when digests of a whole collection are taken. */
export const DIGESTS_PAGE = { points: 256, bytes: 256 * 1024 } as const;
/** Readings of whole collections at a time. */
export const MOST_READINGS = 4;
/** Requests that wait for the engine. */
export const MOST_WAITING = 64;
/** Snapshots, recoveries and copies that wait for the one that runs. */
export const MOST_JOBS = 4;
/** Bytes of a snapshot that is fetched or uploaded. */
export const LARGEST_SNAPSHOT = 8 * 1024 * 1024 * 1024;
/** Bytes that stay free on the disk. */
export const SPARE_BYTES = 64 * 1024 * 1024;
/** Milliseconds. */
export const ENGINE_DEADLINE_MS = 60_000;
export const FETCH_DEADLINE_MS = 600_000;
export const FETCH_IDLE_MS = 30_000;
export const READING_DEADLINE_MS = 600_000;

/** Names of collections, and of their folders. */
export const COLLECTION_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
export const SNAPSHOT_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}\.snapshot$/;
