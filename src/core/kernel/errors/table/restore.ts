import { type ErrorEntry, entry } from '../entry.ts';

/** Of restore drills. */
export const restoreErrors = {
  HF_RESTORE_LIVE: entry(
    409,
    'The restore is refused, for its target {url} is the live store: {reason}.',
    'Name an instance of its own in HOLDFAST_MEMORY_SCRATCH_URL; nothing was sent to it.',
  ),
  HF_RESTORE_RUNNING: entry(
    409,
    'Drill {id} is under way, or still being cleaned up after.',
    'Wait for its end: `holdfast restore status` shows it.',
  ),
  HF_RESTORE_NOTHING: entry(
    404,
    'There is nothing to restore: {reason}.',
    'Make a snapshot with `holdfast backup snapshot`, or name another with --snapshot.',
  ),
  HF_RESTORE_SPACE: entry(
    507,
    'A drill needs {needed} bytes, and there are {free} at {place}.',
    'Make room there, for example with `holdfast backup prune`; nothing was begun.',
  ),
  HF_RESTORE_FAILED: entry(
    502,
    'The restore did not come about: {reason}.',
    'Fix what it names and drill again; until one succeeds, do not rely on this backup.',
  ),
  HF_RESTORE_CLEAN: entry(
    500,
    'What drill {id} made could not be removed: {reason}.',
    'It is tried again by itself; `holdfast restore status` tells when it is gone.',
  ),
} as const satisfies Record<string, ErrorEntry>;
