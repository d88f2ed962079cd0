import type { Clock } from '../../../core/kernel/clock.ts';
import type { UpstreamAnswer } from '../fast-path/upstream-request.ts';
import type { Route } from '../routes/route.ts';
import { eventRewriter, rewriteMessage } from '../upstream/events.ts';
import { credentialWatch } from '../upstream/inspection.ts';
import { headerOf, isEvents } from '../upstream/request.ts';
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

/** What the streams of all upstreams have in common. */
export interface Merging {
  readonly sink: Sink;
  readonly clock: Clock;
  /** What the client heard last. */
  readonly resumed: ReturnType<typeof readEventId>;
  /** The only tools that may appear in a list; all when undefined. */
  readonly tools: readonly string[] | undefined;
  readonly stop: AbortSignal;
}

/**
 * The server streams of all upstreams in one. Each is opened again when it ends, for the client can't see that one of
 * them did; who offers none (405) is left alone. The stream of one call is resumed alone.
 *
 * @returns when all are over; at once when nobody offers a stream
 */
export async function mergeStreams(branches: readonly Branch[], merging: Merging): Promise<void> {
  const { resumed } = merging;
  const isCall = resumed?.stream === 'call';
  const asked = isCall ? branches.filter(({ route }) => route.name === resumed.server) : branches;
  await Promise.all(asked.map((branch) => follow(branch, merging)));
}

async function follow(branch: Branch, merging: Merging): Promise<void> {
  const { sink, clock, resumed, stop } = merging;
  const isCall = resumed?.stream === 'call';
  const place = { last: resumed?.server === branch.route.name ? resumed.id : undefined };
  let wait = FIRST_WAIT_MS;
  while (!stop.aborted) {
    try {
      const answer = await branch.ask({
        method: 'GET',
        message: undefined,
        signal: stop,
        lastEventId: place.last,
      });
      if (answer.statusCode !== 200 || !isEvents(headerOf(answer.headers, 'content-type') ?? '')) {
        void answer.body.dump();
        if (isCall || (answer.statusCode < 500 && place.last === undefined)) return;
        place.last = undefined; // where it was, nobody knows any more
      } else {
        sink.open();
        await pour(branch.route, answer.body, merging, place, () => {
          wait = FIRST_WAIT_MS;
        });
        if (isCall) return;
      }
    } catch (error) {
      if (stop.aborted) return;
      branch.report(error);
      if (isCall) return;
    }
    sink.open();
    await pause(clock, wait, stop);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

async function pour(
  route: Route,
  body: UpstreamAnswer['body'],
  { sink, tools, resumed }: Merging,
  place: { last: string | undefined },
  heard: () => void,
): Promise<void> {
  const { name } = route;
  const rewriter = eventRewriter({
    change: (message) =>
      fromServer(
        name,
        rewriteMessage(message, (result) => route.tools.show(result, tools)),
      ),
    rename: (id) => {
      place.last = asHeader(id);
      return eventId(name, resumed?.stream ?? 'merged', id);
    },
  });
  const watch = credentialWatch(route);
  for await (const chunk of body) {
    watch(chunk);
    heard();
    const events = rewriter.feed(chunk);
    if (events !== '') await sink.write(events);
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
    stop.addEventListener('abort', done);
  });
}

/** @returns the id of an event as `Last-Event-ID` has it, in UTF-8; undefined where that can be no header */
function asHeader(id: string): string | undefined {
  const bytes = Buffer.from(id, 'utf8').toString('latin1');
  return /^[\x20-\x7e\x80-\xff]*$/.test(bytes) ? bytes : undefined;
}
