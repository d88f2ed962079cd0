import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the memory store and its backups. */
export const MemoryError = defineErrors({
  HF_MEMORY_UNREACHABLE: {
    status: 502,
    what: 'The memory store at {url} gave no answer to {call}: {reason}.',
    remedy:
      'Check that it runs, and that HOLDFAST_MEMORY_URL and its certificate authority are right; what was asked for may have happened.',
  },
  HF_MEMORY_REFUSED: {
    status: 502,
    what: 'The memory store at {url} refused {call} with {status}: {text}',
    remedy: 'Fix what its own text names; a 401 or 403 means its API key.',
  },
  HF_MEMORY_ANSWER: {
    status: 502,
    what: 'The memory store at {url} answered {call} with something that is not understood: {reason}.',
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
    remedy: 'Remedy that and run `holdfast backup snapshot`; `holdfast doctor memory` looks at the rest.',
  },
  HF_MEMORY_UNRECORDED: {
    status: 409,
    what: 'Nothing was pruned: no instance runs here, so nobody knows which snapshots are good ones.',
    remedy:
      'Start one, which keeps the last good one whatever its age; or look with `--dry-run`, then prune with `--force`: the newest is kept.',
  },
});
