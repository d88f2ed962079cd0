import type { Clock } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';

/**
 * Waits for an answer no longer than it is of use: a leader that has just died answers nobody. What comes later is dropped.
 *
 * @param what for the error
 * @throws HF_CLUSTER_TIMEOUT
 */
export function inTime<T>(work: Promise<T>, what: string, ms: number, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(new ClusterError('HF_CLUSTER_TIMEOUT', { what, ms })));
    void work.then(resolve, reject).finally(cancel);
  });
}
