/** What the watchers of the kernel have in common: each follows a long-lived program that prints what netlink announces. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { debounce, exhaustMap, Observable, type OperatorFunction, race, startWith, take } from 'rxjs';
import type { Clock } from '../../../../core/kernel/clock.ts';

/** Until a program listens, in real time. */
const LISTENS_WITHIN_MS = 2_000;
const LISTEN_LOOK_MS = 10;

/**
 * Many notices as one: emits when none came for `quietMs`, and `longestMs` after the first of a burst that does not end.
 *
 * @param quietMs milliseconds
 * @param longestMs milliseconds
 */
export function bursts(clock: Clock, quietMs: number, longestMs: number): OperatorFunction<void, void> {
  const after = (ms: number) =>
    new Observable<void>((subscriber) =>
      clock.after(ms, () => {
        subscriber.next();
        subscriber.complete();
      }),
    );
  return (notices) =>
    notices.pipe(
      exhaustMap(() => {
        const quiet = notices.pipe(
          startWith(undefined),
          debounce(() => after(quietMs)),
          take(1),
        );
        return race(quiet, after(longestMs));
      }),
    );
}

/**
 * Waits until a program that was started listens to netlink: what changes before is announced to nobody.
 *
 * @param isRunning whether it is still the same process
 * @returns whether it is
 */
export async function whenListening(pid: number, isRunning: () => boolean): Promise<boolean> {
  const deadline = Date.now() + LISTENS_WITHIN_MS;
  while (isRunning() && !(await isListening(pid)) && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, LISTEN_LOOK_MS));
  return isRunning();
}

/** Whether a process has a netlink socket that belongs to a group of messages. */
async function isListening(pid: number): Promise<boolean> {
  try {
    const sockets = await readFile(`/proc/${pid}/net/netlink`, 'utf8');
    const listening = new Set(
      sockets.split('\n').flatMap((row) => {
        const columns = row.trim().split(/\s+/);
        return /^0*$/.test(columns[3] ?? '') ? [] : [`socket:[${columns.at(-1)}]`];
      }),
    );
    const folder = `/proc/${pid}/fd`;
    for (const name of await readdir(folder))
      if (listening.has(await readlink(`${folder}/${name}`))) return true;
  } catch {
    // It has ended, or belongs to another user.
  }
  return false;
}
