import { duration } from '../../../core/host/amounts.ts';
import { clockNow } from './clock.ts';

export { sizeText as bytes } from '../../../core/host/size.ts';
export { duration };

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
const clock = new Intl.DateTimeFormat(undefined, CLOCK);
const millisClock = new Intl.DateTimeFormat(undefined, { ...CLOCK, fractionalSecondDigits: 3 });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** A time as it is read in a list: the day only where it is another than today. */
export function shortTime(ms: number, millis = false): string {
  const date = new Date(ms);
  const time = (millis ? millisClock : clock).format(date);
  return date.toDateString() === new Date().toDateString() ? time : `${day.format(date)}, ${time}`;
}

/** A time in the viewer's zone; UTC when one hovers over it. */
export function Time({ ms, millis = false }: { ms: number; millis?: boolean }) {
  const utc = new Date(ms).toISOString();
  return (
    <time dateTime={utc} title={`${utc}\n${full.format(ms)}`}>
      {shortTime(ms, millis)}
    </time>
  );
}

/** A value of a state as one line of text. @param most characters */
export function brief(value: unknown, most = 80): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** @returns the number with the word in its right form, e.g. `3 records` */
export function counted(count: number, word: string): string {
  return `${count.toLocaleString()} ${word}${count === 1 ? '' : 's'}`;
}

/** How long it is until a time of the instance, counting down. */
export function Countdown({ due }: { due: number }) {
  const left = due - clockNow.value;
  return (
    <span class="countdown" role="timer">
      {left > 0 ? `in ${duration(left < 1_000 ? left : Math.round(left / 1_000) * 1_000)}` : 'due now'}
    </span>
  );
}
