import type { ScratchStores } from '../../../core/contracts/memory-store.ts';
import type { Clock } from '../../../core/kernel/clock.ts';

/** Instances in this process's own folder are all left over at a start; elsewhere, those whose time is over. */
export async function expiredOf(
  scratch: ScratchStores,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const now = clock.now();
  const found = await scratch.list(signal);
  return found.filter(({ expiresAt }) => scratch.kind === 'embedded' || expiresAt <= now).map(({ id }) => id);
}
