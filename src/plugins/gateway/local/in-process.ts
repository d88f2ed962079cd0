/**
 * Servers of the official SDK in this process. The SDK speaks the protocol: one server a session for the revisions with
 * sessions, one a request for the stateless revision.
 */
import { randomUUID } from 'node:crypto';
import type {
  McpHttpHandler,
  McpServerFactory,
  WebStandardStreamableHTTPServerTransport as SessionTransport,
} from '@modelcontextprotocol/server';
import type { Clock } from '../../../core/kernel/clock.ts';
import { EventBudget, EventMemory } from './event-memory.ts';
import type { LocalServer } from './server.ts';

/** Sessions of one route at once, and of one key among them; of whoever has most, the one that was silent for longest gives way. */
const MOST_SESSIONS = 1_000;
const MOST_SESSIONS_OF_KEY = 250;
/** When to come back after too many sessions, seconds. */
const BUSY_SECONDS = '10';
/** A session without a request for so long is ended, milliseconds. */
const IDLE_MS = 30 * 60_000;
/** What a client that took part in a stream waits before it asks for the rest, milliseconds. */
const RETRY_MS = 1_000;

/** Loaded with the first request: it takes a tenth of a second and some 20 MB. */
type Sdk = typeof import('@modelcontextprotocol/server');

interface Session {
  readonly transport: SessionTransport;
  /** The virtual key that began it. */
  readonly key: string | undefined;
  readonly events: EventMemory;
  /** Answers that have not ended. */
  open: number;
  /** Monotonic, milliseconds. */
  usedAt: number;
}

interface InProcessOptions {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  /** Called with what a server throws outside of an answer. */
  readonly onError: (error: unknown) => void;
}

export class InProcessServer implements LocalServer {
  readonly #factory: McpServerFactory;
  readonly #options: InProcessOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #budget = new EventBudget();
  #sdk: Promise<Sdk> | undefined;
  #stateless: McpHttpHandler | undefined;
  #cancelSweep: (() => void) | undefined;

  constructor(factory: McpServerFactory, options: InProcessOptions) {
    this.#factory = factory;
    this.#options = options;
  }

  /** Whether it was asked for anything yet. */
  get isLoaded(): boolean {
    return this.#sdk !== undefined;
  }

  async fetch(request: Request, key?: string): Promise<Response> {
    if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
    this.#sdk ??= import('@modelcontextprotocol/server');
    const sdk = await this.#sdk;
    try {
      const parsedBody = request.method === 'POST' ? await request.clone().json() : undefined;
      const isSessioned = await sdk.isLegacyRequest(request, parsedBody);
      if (isSessioned) return await this.#inSession(sdk, request, parsedBody, key);
      this.#stateless ??= sdk.createMcpHandler(this.#factory, {
        legacy: 'reject',
        onerror: this.#options.onError,
      });
      return await this.#stateless.fetch(request, { parsedBody });
    } catch (error) {
      this.#options.onError(error);
      return failure(500, -32_603, 'The server failed.');
    }
  }

  async close(): Promise<void> {
    this.#cancelSweep?.();
    const transports = [...this.#sessions.values()].map(({ transport }) => transport.close());
    this.#sessions.clear();
    await Promise.all([...transports, this.#stateless?.close()]);
  }

  async #inSession(sdk: Sdk, request: Request, parsedBody: unknown, key?: string): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    if (id === null) return this.#begin(sdk, request, parsedBody, key);
    const session = this.#sessions.get(id);
    if (!session) return failure(404, -32_001, 'Session not found');
    return this.#during(session, () => session.transport.handleRequest(request, { parsedBody }));
  }

  async #begin(sdk: Sdk, request: Request, parsedBody: unknown, key?: string): Promise<Response> {
    const full = this.#makeRoom(key);
    if (full) return full;
    const id = randomUUID();
    const events = new EventMemory(this.#budget);
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#forget(id),
      eventStore: events,
      retryInterval: RETRY_MS,
    });
    const session: Session = { transport, key, events, open: 0, usedAt: this.#options.clock.monotonic() };
    this.#sessions.set(id, session); // it counts from here on, for others begin meanwhile
    try {
      return await this.#during(session, async () => {
        const server = await this.#factory({ era: 'legacy', requestInfo: request });
        await server.connect(transport);
        return transport.handleRequest(request, { parsedBody });
      });
    } finally {
      if (transport.sessionId === undefined) this.#end(id, session);
      else this.#cancelSweep ??= this.#options.clock.after(IDLE_MS, () => this.#sweep());
    }
  }

  async #during(session: Session, answer: () => Promise<Response>): Promise<Response> {
    session.open += 1;
    const ended = (): void => {
      session.open -= 1;
      session.usedAt = this.#options.clock.monotonic();
    };
    try {
      const response = await answer();
      if (!response.body) {
        ended();
        return response;
      }
      return new Response(watched(response.body, ended), response);
    } catch (error) {
      ended();
      throw error;
    }
  }

  /** Ends a silent session where there are as many as there may be. @returns what is wrong when none is silent */
  #makeRoom(key: string | undefined): Response | undefined {
    const byKey = Map.groupBy(this.#sessions, ([, session]) => session.key);
    const own = key === undefined ? [] : (byKey.get(key) ?? []);
    if (own.length >= MOST_SESSIONS_OF_KEY) {
      if (this.#endSilent(own)) return undefined;
      return full(429, `This key has ${MOST_SESSIONS_OF_KEY} sessions in use here, as many as it may.`);
    }
    if (this.#sessions.size < MOST_SESSIONS) return undefined;
    const byCount = [...byKey.values()].sort((one, other) => other.length - one.length);
    if (byCount.some((sessions) => this.#endSilent(sessions))) return undefined;
    return full(503, 'Too many sessions are open.');
  }

  /** @returns whether there was one to end */
  #endSilent(sessions: readonly (readonly [id: string, session: Session])[]): boolean {
    const silent = sessions.filter(([, { open }]) => open === 0);
    const [oldest] = silent.sort(([, one], [, other]) => one.usedAt - other.usedAt);
    if (oldest) this.#end(...oldest);
    return oldest !== undefined;
  }

  #sweep(): void {
    const { clock } = this.#options;
    const before = clock.monotonic() - IDLE_MS;
    for (const [id, session] of this.#sessions)
      if (session.open === 0 && session.usedAt <= before) this.#end(id, session);
    this.#cancelSweep = this.#sessions.size > 0 ? clock.after(IDLE_MS / 2, () => this.#sweep()) : undefined;
  }

  #forget(id: string): void {
    this.#sessions.get(id)?.events.clear();
    this.#sessions.delete(id);
  }

  #end(id: string, { transport }: Session): void {
    this.#forget(id);
    transport.close().catch(this.#options.onError);
  }
}

/** A body that says when it has ended, or nobody reads it any more. */
function watched(body: NonNullable<Response['body']>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        ended();
        controller.close();
      } catch (error) {
        ended();
        controller.error(error);
      }
    },
    async cancel(reason) {
      ended();
      await reader.cancel(reason);
    },
  });
}

function full(status: 429 | 503, message: string): Response {
  const response = failure(status, -32_000, message);
  response.headers.set('retry-after', BUSY_SECONDS);
  return response;
}

const failure = (status: number, code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status });
