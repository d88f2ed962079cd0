import type { CommandContext } from '../core/host/plugin/command.ts';
import { duration } from '../core/host/terminal.ts';

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
 * The progress of long work on standard error: bytes, rate and time left. On a terminal it is one line that is drawn again;
 * elsewhere a line of its own every ten seconds, so work that is shorter prints nothing.
 *
 * @param what the work, e.g. `Exporting`
 * @param now milliseconds of a clock that never goes back
 */
export function progressOf(
  what: string,
  { terminal, note }: ProgressOutput,
  now: () => number = () => performance.now(),
): OnProgress {
  const began = now();
  let drawnAt = Number.NEGATIVE_INFINITY;
  let linedAt = began;
  return (bytes, part) => {
    const time = now();
    const line = () => progressLine(what, { bytes, part, elapsedMs: time - began });
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

function progressLine(
  what: string,
  { bytes, part, elapsedMs }: { bytes: number; part: number | undefined; elapsedMs: number },
): string {
  const isRated = elapsedMs >= LEAST_ELAPSED_MS && bytes > 0;
  return [
    `${what}: ${size(bytes)}`,
    ...(part === undefined ? [] : [`${Math.floor(Math.min(1, part) * 100)} %`]),
    ...(isRated ? [`${size((bytes / elapsedMs) * 1_000)}/s`] : []),
    ...(isRated && part !== undefined && part > 0
      ? [`${duration((elapsedMs * Math.max(0, 1 - part)) / part)} left`]
      : []),
  ].join(', ');
}

const size = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
