import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the embedded memory store. */
export const MemoryStoreError = defineErrors({
  HF_MEMORY_STORE_REQUEST: {
    status: 400,
    what: 'Wrong input: {reason}.',
    remedy:
      'Correct the request; nothing was changed. docs/memory.md lists what the embedded store supports.',
  },
  HF_MEMORY_STORE_VALIDATION: {
    status: 422,
    what: 'Validation error in the request: {reason}.',
    remedy: 'Stay within the bounds that it names; nothing was changed.',
  },
  HF_MEMORY_STORE_COLLECTION_MISSING: {
    status: 404,
    what: "Not found: Collection `{collection}` doesn't exist.",
    remedy: 'Create it, or correct the name: GET /collections lists the existing ones.',
  },
  HF_MEMORY_STORE_COLLECTION_EXISTS: {
    status: 409,
    what: 'Wrong input: Collection `{collection}` already exists.',
    remedy: 'Use it, or delete it first.',
  },
  HF_MEMORY_STORE_SNAPSHOT_MISSING: {
    status: 404,
    what: 'Not found: Snapshot {snapshot} of collection `{collection}` does not exist.',
    remedy: 'GET /collections/{collection}/snapshots lists the existing ones.',
  },
  HF_MEMORY_STORE_SNAPSHOT_INVALID: {
    status: 400,
    what: 'Wrong input: the snapshot cannot be recovered from: {reason}.',
    remedy: 'Choose another snapshot; the collection is as it was.',
  },
  HF_MEMORY_STORE_LOCATION: {
    status: 403,
    what: 'Forbidden location: snapshots are not fetched from {place}.',
    remedy: 'Use a snapshot of this store or of one named in `recoverFrom`, or upload the file.',
  },
  HF_MEMORY_STORE_FETCH: {
    status: 400,
    what: 'Wrong input: Failed to download the snapshot from URL {url}: {reason}.',
    remedy: 'Check that the URL is right and that this store can reach it; the collection is as it was.',
  },
  HF_MEMORY_STORE_BUSY: {
    status: 429,
    what: 'The memory store has too much work: {what}.',
    remedy: 'Try again in {seconds} s, as the header Retry-After says.',
  },
  HF_MEMORY_STORE_FULL: {
    status: 507,
    what: 'The disk has no room for {what}.',
    remedy: 'Make room under the data folder, for example with `holdfast backup prune`; nothing was changed.',
  },
  HF_MEMORY_STORE_FAILED: {
    status: 500,
    what: 'The memory store could not do its work: {reason}.',
    remedy:
      'Look at the log for `memory-store.`; what was stored before is untouched, and the next request starts its thread again.',
  },
  HF_MEMORY_STORE_SCRATCH: {
    status: 503,
    what: 'No scratch instance of the memory store could be made: {reason}.',
    remedy: 'Fix the cause and start the drill again; the live store was not touched.',
  },
});
