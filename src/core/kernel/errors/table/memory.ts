import { type ErrorEntry, entry } from '../entry.ts';

/** Of the memory store, its snapshots and drills. */
export const memoryErrors = {
  // A memory store elsewhere, or our own, as its client sees it
  HF_MEMORY_UNREACHABLE: entry(
    502,
    'The memory store at {url} gave no answer to {call}: {reason}.',
    'Check that it runs, and that HOLDFAST_MEMORY_URL and its certificate authority are right; what was asked for may have happened.',
  ),
  HF_MEMORY_REFUSED: entry(
    502,
    'The memory store at {url} refused {call} with {status}: {text}',
    'Fix what its own text names; a 401 or 403 means its API key.',
  ),
  HF_MEMORY_ANSWER: entry(
    502,
    'The memory store at {url} answered {call} with something that is not understood: {reason}.',
    'Check that HOLDFAST_MEMORY_URL names the REST port of a memory store (6333), and its version.',
  ),
  HF_MEMORY_NONE: entry(
    503,
    'There is no memory store: {reason}.',
    'Set HOLDFAST_MEMORY_URL, or list `memoryStore()` in plugins.config.ts.',
  ),
  HF_MEMORY_BACKUP: entry(
    503,
    'No backup of the memory store was made: {reason}.',
    'Remedy that and run `holdfast backup snapshot`; `holdfast doctor memory` looks at the rest.',
  ),
  HF_MEMORY_UNRECORDED: entry(
    409,
    'Nothing was pruned: no instance runs here, so nobody knows which snapshots are good ones.',
    'Start one, which keeps the last good one whatever its age; or look with `--dry-run`, then prune with `--force`: the newest is kept.',
  ),
  // The embedded store
  HF_MEMORY_STORE_REQUEST: entry(
    400,
    'Wrong input: {reason}.',
    'Correct the request; nothing was changed. What the embedded store can do is in docs/memory.md.',
  ),
  HF_MEMORY_STORE_VALIDATION: entry(
    422,
    'Validation error in the request: {reason}.',
    'Stay within the bounds that it names; nothing was changed.',
  ),
  HF_MEMORY_STORE_API_KEY: entry(
    401,
    'Must provide an API key or an Authorization bearer token.',
    'Send the key of the memory store in the header `api-key`.',
  ),
  HF_MEMORY_STORE_COLLECTION_MISSING: entry(
    404,
    "Not found: Collection `{collection}` doesn't exist.",
    'Create it, or correct the name: GET /collections lists those there are.',
  ),
  HF_MEMORY_STORE_COLLECTION_EXISTS: entry(
    409,
    'Wrong input: Collection `{collection}` already exists.',
    'Use it, or delete it first.',
  ),
  HF_MEMORY_STORE_SNAPSHOT_MISSING: entry(
    404,
    'Not found: Snapshot {snapshot} of collection `{collection}` does not exist.',
    'GET /collections/{collection}/snapshots lists those there are.',
  ),
  HF_MEMORY_STORE_SNAPSHOT_INVALID: entry(
    400,
    'Wrong input: the snapshot cannot be recovered from: {reason}.',
    'Choose another snapshot; the collection is as it was.',
  ),
  HF_MEMORY_STORE_LOCATION: entry(
    403,
    'Forbidden location: snapshots are not fetched from {place}.',
    'Use a snapshot of this store or of one named in `recoverFrom`, or upload the file.',
  ),
  HF_MEMORY_STORE_FETCH: entry(
    400,
    'Wrong input: Failed to download the snapshot from URL {url}: {reason}.',
    'Check that the URL is right and that this store can reach it; the collection is as it was.',
  ),
  HF_MEMORY_STORE_BUSY: entry(
    429,
    'The memory store has more work than it takes: {what}.',
    'Try again in {seconds} s, as the header Retry-After says.',
  ),
  HF_MEMORY_STORE_FULL: entry(
    507,
    'The disk has no room for {what}.',
    'Make room under the data folder, for example with `holdfast backup prune`; nothing was changed.',
  ),
  HF_MEMORY_STORE_FAILED: entry(
    500,
    'The memory store could not do its work: {reason}.',
    'Look at the log for `memory-store.`; what was stored before is untouched, and the next request starts it anew.',
  ),
  HF_RESTORE_SCRATCH: entry(
    503,
    'No scratch instance of the memory store can be had: {reason}.',
    'Remedy that and start the drill again; nothing of the live store was touched.',
  ),
} as const satisfies Record<string, ErrorEntry>;
