import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of restore drills. */
export const RestoreError = defineErrors({
  HF_RESTORE_SCRATCH: {
    status: 503,
    what: 'No scratch instance of the memory store can be had: {reason}.',
    remedy: 'Remedy that and start the drill again; nothing of the live store was touched.',
  },
  HF_RESTORE_LIVE: {
    status: 409,
    what: 'The restore is refused, for its target {url} is the live store: {reason}.',
    remedy: 'Name an instance of its own in HOLDFAST_MEMORY_SCRATCH_URL; nothing was sent to it.',
  },
  HF_RESTORE_RUNNING: {
    status: 409,
    what: 'Drill {id} is under way, or still being cleaned up after.',
    remedy: 'Wait for its end: `holdfast restore status` shows it.',
  },
  HF_RESTORE_NOTHING: {
    status: 404,
    what: 'There is nothing to restore: {reason}.',
    remedy: 'Make a snapshot with `holdfast backup snapshot`, or name another with --snapshot.',
  },
  HF_RESTORE_SPACE: {
    status: 507,
    what: 'A drill needs {needed} bytes, and there are {free} at {place}.',
    remedy: 'Make room there, for example with `holdfast backup prune`; nothing was begun.',
  },
  HF_RESTORE_FAILED: {
    status: 502,
    what: 'The restore did not come about: {reason}.',
    remedy: 'Fix what it names and drill again; until one succeeds, do not rely on this backup.',
  },
  HF_RESTORE_CLEAN: {
    status: 500,
    what: 'What drill {id} made could not be removed: {reason}.',
    remedy: 'Holdfast tries again by itself; `holdfast restore status` shows when it is gone.',
  },
});
