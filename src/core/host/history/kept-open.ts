import type { LogSource, OpenedLog } from './log-source.ts';

/** A log that nobody asks anything for so long is closed, milliseconds. */
const IDLE_MS = 3_000;
/** And after so long it is opened anew: somebody may have put another one in its place. */
const OLD_MS = 60_000;

interface Kept {
  readonly opened: Promise<OpenedLog>;
  readonly since: number;
  users: number;
}

/**
 * A source that stays open from one question to the next: a page asks several at a time, and to open a database takes as long
 * as to answer a short one.
 *
 * @param ends from then on it is closed with the last question
 */
export function keptOpen(source: LogSource, ends: AbortSignal): LogSource {
  let kept: Kept | undefined;
  let idle: NodeJS.Timeout | undefined;
  const forget = (): void => {
    clearTimeout(idle);
    const old = kept;
    kept = undefined;
    if (old?.users === 0) void closed(old);
  };
  ends.addEventListener('abort', forget, { once: true });
  return {
    ...source,
    async open() {
      if (ends.aborted) return source.open();
      if (kept && performance.now() - kept.since > OLD_MS) forget();
      clearTimeout(idle);
      kept ??= { opened: source.open(), since: performance.now(), users: 0 };
      const own = kept;
      own.users += 1;
      const release = (): void => {
        own.users -= 1;
        if (own.users > 0) return;
        if (own === kept) idle = setTimeout(forget, IDLE_MS).unref();
        else void closed(own);
      };
      try {
        const { log } = await own.opened;
        return { log, close: release };
      } catch (error) {
        if (kept === own) kept = undefined;
        throw error;
      }
    },
  };
}

async function closed({ opened }: Kept): Promise<void> {
  const { close } = await opened;
  close();
}
