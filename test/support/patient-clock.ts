import { setTimeout as delay } from 'node:timers/promises';
import { VirtualClock } from './virtual-clock.ts';

const SECOND = 1_000;
/** What waits for the world outside arms the deadline of its wait in one of these. */
const WAITS = ['/plugins/columnar/database.ts', '/host/http/client.ts', '/kernel/actors/effects.ts'];
/** What has longer waits for other work of the runtime, such as a turn in the database, and not for the world outside. */
const LONGEST_DEADLINE_MS = 600_000;
/** Real time after which something counts as no wait: a stream that stays open. */
const LONGEST_WAIT_MS = 20_000;

/** Virtual time that stands still while something real is waited for: queries, pushes, and whatever else has a deadline. */
export class PatientClock extends VirtualClock {
  readonly #waits = new Map<object, number>();

  override after(delayMs: number, callback: () => void): () => void {
    // The system's clock has whole milliseconds, whatever was waited for.
    const ms = Math.ceil(delayMs);
    const { stack = '' } = new Error();
    const caller = stack.split('\n')[2] ?? '';
    if (ms > LONGEST_DEADLINE_MS || !WAITS.some((file) => caller.includes(file)) || caller.includes('Timers'))
      return super.after(ms, callback);
    const wait = {};
    this.#waits.set(wait, performance.now());
    const cancel = super.after(ms, () => {
      this.#waits.delete(wait);
      callback();
    });
    return () => {
      this.#waits.delete(wait);
      cancel();
    };
  }

  get isBusy(): boolean {
    const since = performance.now() - LONGEST_WAIT_MS;
    return [...this.#waits.values()].some((began) => began > since);
  }

  /** Moves time second by second, each when what the one before set off has ended. */
  async pass(ms: number, settled: () => Promise<unknown> | undefined): Promise<void> {
    for (let left = ms; left > 0; left -= SECOND) {
      await this.advance(SECOND);
      await settled();
      while (this.isBusy) {
        await this.advance(0);
        await delay(2);
      }
    }
  }
}
