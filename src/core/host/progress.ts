import type { CommandContext } from './plugin/command.ts';
import { sizeText } from './size.ts';
import { duration } from './terminal.ts';

/** Where nobody watches standard error, progress is a line every so often, milliseconds. */
const LINE_EVERY_MS = 10_000;
/** A terminal's line is drawn again at most this often, milliseconds. */
const DRAW_EVERY_MS = 200;
/** Before that much time a rate says nothing, milliseconds. */
const LEAST_ELAPSED_MS = 1_000;

/** Called with how many bytes are done, and which part of the whole (0 to 1) where that is known. */
type OnProgress = (bytes: number, part?: number) => void;

/** Where progress is shown: a command's context is one. */
interface ProgressOutput extends Pick<CommandContext, 'note'> {
  readonly terminal: Pick<CommandContext['terminal'], 'watched' | 'progress'>;
}

/**
 * A line about long work on standard error: on a terminal one that is drawn again, elsewhere a line of its own every ten
 * seconds, so that work that is shorter prints nothing.
 *
 * @param now milliseconds of a clock that never goes back
 * @returns takes the line as a function, which is called only when it is shown
 */
export function passingLine(
  { terminal, note }: ProgressOutput,
  now: () => number = () => performance.now(),
): (line: () => string) => void {
  let drawnAt = Number.NEGATIVE_INFINITY;
  let linedAt = now();
  return (line) => {
    const time = now();
    if (terminal.watched) {
      if (time - drawnAt < DRAW_EVERY_MS) return;
      drawnAt = time;
      terminal.progress(line());
    } else if (time - linedAt >= LINE_EVERY_MS) {
      linedAt = time;
      note(line());
    }
  };
}

/**
 * The progress of long work on standard error: bytes, rate and time left.
 *
 * @param what the work, e.g. `Exporting`
 * @param now milliseconds of a clock that never goes back
 */
export function progressOf(
  what: string,
  output: ProgressOutput,
  now: () => number = () => performance.now(),
): OnProgress {
  const began = now();
  const show = passingLine(output, now);
  return (bytes, part) => show(() => progressLine(what, { bytes, part, elapsedMs: now() - began }));
}

function progressLine(
  what: string,
  { bytes, part, elapsedMs }: { bytes: number; part: number | undefined; elapsedMs: number },
): string {
  const isRated = elapsedMs >= LEAST_ELAPSED_MS && bytes > 0;
  return [
    `${what}: ${sizeText(bytes)}`,
    ...(part === undefined ? [] : [`${Math.floor(Math.min(1, part) * 100)} %`]),
    ...(isRated ? [`${sizeText((bytes / elapsedMs) * 1_000)}/s`] : []),
    ...(isRated && part !== undefined && part > 0
      ? [`${duration((elapsedMs * Math.max(0, 1 - part)) / part)} left`]
      : []),
  ].join(', ');
}
