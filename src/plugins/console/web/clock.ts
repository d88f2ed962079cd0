import { effect, signal } from '@preact/signals';
import { log } from './live.ts';

/** How far the clock of the instance is ahead of this machine's, milliseconds. */
let aheadMs = 0;

/** The time of the instance, each second while anything on the page counts; epoch milliseconds. */
export const clockNow = signal(Date.now(), {
  watched() {
    tick();
    timer = setInterval(tick, 1_000);
  },
  unwatched() {
    clearInterval(timer);
  },
});
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  clockNow.value = Date.now() + aheadMs;
}

effect(() => {
  const { now } = log.value ?? {};
  if (now !== undefined) aheadMs = now - Date.now();
});
