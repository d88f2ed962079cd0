import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Semaphore } from '../../../core/host/concurrency.ts';
import { keptOpen } from '../../../core/host/history/kept-open.ts';
import type { LogSource } from '../../../core/host/history/log-source.ts';
import { LogQuestions } from '../../../core/host/history/questions.ts';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { Access } from '../access/access.ts';
import { requireCaller } from '../access/routes.ts';
import { ConsoleError } from '../errors.ts';
import type { MachineGraph } from '../statechart/graph.ts';
import type { Endpoint } from './endpoint.ts';
import { PATHS } from './paths.ts';

/** By when an answer must be there, and when a search ends with what it has; milliseconds. */
const DEADLINE_MS = 20_000;
const ENOUGH_MS = 300;
/** Questions at once: each holds the event loop for some milliseconds at a time. */
const AT_ONCE = 2;
/** Pages of plugins that are made at once: they may wait for a database. */
const PAGES_AT_ONCE = 4;
/** The largest question that is posted, bytes. */
const BODY_LIMIT = 64 * 1024;

export interface ApiOptions {
  readonly access: Access;
  readonly source: LogSource;
  /** The running instance; absent where the log is one that nothing writes. */
  readonly services?: Services;
}

/** Serves the API. What answers is loaded with the first question: without an open console it costs nothing. */
export function apiRoutes(http: HttpSurface, options: ApiOptions): void {
  let loading: ReturnType<typeof load> | undefined;
  for (const method of ['GET', 'POST'] as const) {
    for (const path of PATHS[method]) {
      http.route({
        method,
        url: urlOf(path),
        config: { credential: 'open' },
        bodyLimit: BODY_LIMIT,
        exposeHeadRoute: false, // a HEAD would follow the log, or work for an answer that nobody reads
        handler: async (request, reply) => {
          const caller = requireCaller(options.access, request);
          loading ??= load(options, http.draining);
          const { answer } = await loading;
          return answer(`${method} ${path}`, { request, reply, caller });
        },
      });
    }
  }
  http.get('/api/*', { config: { credential: 'open' } }, (request) => {
    requireCaller(options.access, request);
    throw new ConsoleError('HF_CONSOLE_PATH');
  });
}

/** A path of OpenAPI as the surface takes it; an address has slashes, so its parameter is what is left of the path. */
function urlOf(path: string): string {
  return path.replace(/\{id\}$/, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly caller: ReturnType<typeof requireCaller>;
}

/** The parts of the API, the largest each alone: together they would hold up the event loop for 40 ms. */
const LARGEST = [
  () => import('../../../core/host/history/moments.ts'),
  () => import('../../../core/host/history/stories.ts'),
  () => import('./records.ts'),
  () => import('./stories.ts'),
  () => import('./actors.ts'),
  () => import('./what-if.ts'),
  () => import('./pages.ts'),
];

async function load({ source: given, services, access }: ApiOptions, draining: AbortSignal) {
  for (const part of LARGEST) {
    await part();
    await turn();
  }
  const [{ ENDPOINTS }, { openApiOf }, { LiveRecords }, { Moments }, drawings, { ForeignDrawings }] =
    await Promise.all([
      import('./endpoints.ts'),
      import('./openapi.ts'),
      import('./events.ts'),
      import('../../../core/host/history/moments.ts'),
      import('../statechart/built-drawings.ts'),
      import('../statechart/foreign-drawings.ts'),
    ]);
  const foreign = new ForeignDrawings();
  const endpoints = new Map<string, Endpoint>(ENDPOINTS.map((one) => [`${one.method} ${one.path}`, one]));
  const limits = {
    deadlineMs: DEADLINE_MS,
    enoughMs: ENOUGH_MS,
    atOnce: AT_ONCE,
    late: () => new ConsoleError('HF_CONSOLE_DEADLINE', { seconds: DEADLINE_MS / 1_000 }),
  };
  const source = keptOpen(given, draining);
  const parts = {
    source,
    services,
    questions: new LogQuestions(source, limits, services?.logger),
    moments: new Moments(),
    drawingOf: async (type: string, graph: MachineGraph) =>
      (await drawings.builtDrawing(type, graph)) ?? (await foreign.of(graph)),
    pages: new Semaphore(PAGES_AT_ONCE),
  };
  const long = new Semaphore(1);
  const live = services && new LiveRecords(source, services, parts.questions.words(), () => access.sweep());
  const follow = async ({ request, reply, caller }: Exchange): Promise<unknown> => {
    if (!live) throw new ConsoleError('HF_CONSOLE_NOT_LIVE', { what: 'following it' });
    const ends = [draining, ...(caller.session ? [caller.session.ended] : [])];
    const stream = await live.open(lastSeen(request), ends);
    return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream);
  };
  return {
    async answer(name: string, { request, reply, caller }: Exchange): Promise<unknown> {
      if (name === 'GET /api/openapi.json') return openApiOf(ENDPOINTS);
      if (name === 'GET /api/events') return follow({ request, reply, caller });
      const endpoint = endpoints.get(name);
      if (!endpoint) throw new Error(`nothing answers ${name}`);
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort(new Error('nobody waits for it any more')));
      const { params, query, body } = request;
      const input = { params: namedParams(params), query, body };
      try {
        return await endpoint.handle(input, {
          ...parts,
          caller,
          correlation: request.id,
          gone: gone.signal,
          ask: (work) => parts.questions.ask(work, gone.signal),
          askLong: (work) => long.run(() => parts.questions.ask(work, gone.signal)),
        });
      } catch (error) {
        if (gone.signal.aborted) return {}; // nobody reads it
        throw error;
      }
    },
  };
}

function namedParams(params: unknown): unknown {
  const { '*': id, ...rest } = params as Readonly<Record<string, string>>;
  return id === undefined ? rest : { ...rest, id };
}

/** The last record that a window has: a browser that lost its connection says so in a header. @throws HF_CONSOLE_REQUEST */
function lastSeen({ headers, query }: FastifyRequest): number | undefined {
  const { after, ...rest } = query as Readonly<Record<string, unknown>>;
  const wanted = headers['last-event-id'] ?? after;
  const isKnown = wanted === undefined || (typeof wanted === 'string' && /^\d{1,15}$/.test(wanted));
  if (!isKnown || Object.keys(rest).length > 0)
    throw new ConsoleError('HF_CONSOLE_REQUEST', { reason: '`after` is the number of a record' });
  return wanted === undefined ? undefined : Number(wanted);
}
