import type { Clock } from '../../../core/clock.ts';
import { eventRewriter } from '../upstream/rewrite.ts';
import type { Branch } from './branch.ts';
import { eventId, fromServer, type readEventId } from './server-requests.ts';

/** Waits before a stream that has ended is opened again, milliseconds. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/** Where what the servers say goes. */
export interface Sink {
  /** Somebody will say something: the client's stream may begin. */
  open(): void;
  /** Whole events. @returns when there is room for more */
  write(events: string): Promise<void> | undefined;
}

/**
 * The server streams of all upstreams in one. Each is opened again when it ends, for the client can't see that one of
 * them did; who offers none (405) is left alone.
 *
 * @param resumed what the client heard last
 * @returns when all are over; at once when nobody offers a stream
 */
export async function mergeStreams(
  branches: readonly Branch[],
  sink: Sink,
  clock: Clock,
  resumed: ReturnType<typeof readEventId>,
  stop: AbortSignal,
): Promise<void> {
  await Promise.all(
    branches.map((branch) => {
      const last = resumed?.server === branch.route.name ? resumed.id : undefined;
      return follow(branch, sink, clock, last, stop);
    }),
  );
}

async function follow(
  branch: Branch,
  sink: Sink,
  clock: Clock,
  resumed: string | undefined,
  stop: AbortSignal,
): Promise<void> {
  const server = branch.route.name;
  let last = resumed;
  let wait = FIRST_WAIT_MS;
  const rename = (id: string) => {
    last = id;
    return eventId(server, 'merged', id);
  };
  while (!stop.aborted) {
    try {
      const answer = await branch.ask({ method: 'GET', message: undefined, signal: stop, lastEventId: last });
      const offered =
        answer.statusCode === 200 && String(answer.headers['content-type']).startsWith('text/event-stream');
      if (!offered) {
        await answer.body.dump();
        if (answer.statusCode < 500 && last === undefined) return;
        last = undefined; // where it was, nobody knows any more
        throw new Error(`status ${answer.statusCode}`);
      }
      sink.open();
      const rewriter = eventRewriter({ change: (message) => fromServer(server, message), rename });
      for await (const chunk of answer.body) {
        wait = FIRST_WAIT_MS;
        const events = rewriter.feed(chunk as Buffer);
        if (events !== '') await sink.write(events);
      }
    } catch {
      if (stop.aborted) return;
      sink.open();
    }
    await pause(clock, wait, stop);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

function pause(clock: Clock, ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const done = () => {
      cancel();
      stop.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    stop.addEventListener('abort', done, { once: true });
  });
}
