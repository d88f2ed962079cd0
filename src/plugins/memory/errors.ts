import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the memory store and its backups. */
export const MemoryError = defineErrors({
  HF_MEMORY_TEXT: {
    status: 413,
    what: 'The collection {collection} has more than {most} points, which are too many to search by words here.',
    remedy: 'Search it by vectors, or name an upstream of your own for the route `memory`.',
  },
  HF_MEMORY_SEARCH: {
    status: 503,
    what: 'The search by words took longer than {seconds} s, or one beside it did.',
    remedy: 'Search for fewer words, and for whole ones instead of beginnings.',
  },
  HF_MEMORY_UNREACHABLE: {
    status: 502,
    what: 'The memory store at {url} gave no answer to {call}: {reason}.',
    remedy:
      'Check that it runs, and that HOLDFAST_MEMORY_URL and its certificate authority are right; the request may have been carried out.',
  },
  HF_MEMORY_REFUSED: {
    status: 502,
    what: 'The memory store at {url} refused {call} with {status}: {text}',
    remedy: 'Fix what the text of the store names; 401 and 403 are about its API key.',
  },
  HF_MEMORY_ANSWER: {
    status: 502,
    what: 'The memory store at {url} gave an unexpected answer to {call}: {reason}.',
    remedy: 'Check that HOLDFAST_MEMORY_URL names the REST port of a memory store (6333), and its version.',
  },
  HF_MEMORY_NONE: {
    status: 503,
    what: 'There is no memory store: {reason}.',
    remedy: 'Set HOLDFAST_MEMORY_URL, or list `memoryStore()` in plugins.config.ts.',
  },
  HF_MEMORY_BACKUP: {
    status: 503,
    what: 'No backup of the memory store was made: {reason}.',
    remedy: 'Fix the cause and run `holdfast backup snapshot`; `holdfast doctor memory` checks the rest.',
  },
  HF_MEMORY_RECORD: {
    status: 500,
    what: 'The list of points that was recorded with a backup ({list}) cannot be used: {reason}.',
    remedy:
      'Make a new snapshot with `holdfast backup snapshot`; what this one held point by point is not known any more.',
  },
  HF_MEMORY_SEEDS: {
    status: 409,
    what: 'No seeds were chosen: {reason}.',
    remedy:
      'Store points first, or name existing ones with `holdfast backup seed --ids`; `--synthetic` writes 16 known points into the collection.',
  },
  HF_MEMORY_UNRECORDED: {
    status: 409,
    what: 'Nothing was pruned: no instance runs here, so it is unknown which snapshots are good.',
    remedy:
      'Start an instance, which keeps the last good snapshot whatever its age; or check with `--dry-run`, then prune with `--force`, which keeps the newest one.',
  },
});
