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

/** A duration in the one or two units that matter. @param ms milliseconds */
export function duration(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

/** A size in the unit that fits, e.g. `1.5 MiB`. @param count bytes */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, count)) / 10)));
  return `${(count / 1024 ** power).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${units[power]}`;
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
