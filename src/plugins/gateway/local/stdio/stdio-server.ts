import { unlessAborted } from '../../../../core/host/deadline.ts';
import type { EpochMs } from '../../../../core/kernel/ids.ts';
import { isObject } from '../../../../core/kernel/json.ts';
import { rpcError, SERVER_ERROR, UNSUPPORTED_REVISION } from '../../mcp/json-rpc.ts';
import { type Message, readMessage } from '../../mcp/message.ts';
import { PROBE_NAME } from '../../mcp/probe-client.ts';
import { eraOf, isStateless, REVISIONS, STATELESS_SINCE, sessionUnknown } from '../../mcp/protocol.ts';
import type { LocalServer } from '../server.ts';
import { jsonResponse } from './answer-stream.ts';
import { Unavailable } from './environment.ts';
import { HostedProcess, type Peer, RestartDelay, type StdioServerOptions } from './hosted-process.ts';
import type { ServerProcess } from './server-process.ts';
import { StdioSession } from './session.ts';
import { SharedServer } from './shared-server.ts';

/** What health pages and alerts say of a server on standard input and output. */
export interface StdioFacts {
  /** Processes that run, or are being started or ended. */
  readonly processes: number;
  readonly sessions: number;
  /** Starts after a process had ended by itself. */
  readonly restarts: number;
  /** How long no process is started because the last one ended by itself, milliseconds. */
  readonly waitingMs: number;
  /** The last process that ended. */
  readonly lastEnd?: { readonly at: EpochMs; readonly reason: string; readonly wanted: boolean };
  /** Why the last start failed before there was a process; absent when it did not. */
  readonly unavailable?: string;
}

/** How long a program may take until it answers for the first time. */
const START_MS = 30_000;
/** How long it counts that a program does not speak the stateless revision. */
const REMEMBER_MS = 600_000;
/** When to come back after too many processes. */
const BUSY_MS = 10_000;

/**
 * An MCP server that is a program of this machine, on its standard input and output. Each session (revisions up to
 * 2025-11-25) has a process of its own; the stateless revision has one for all callers. Processes start when they are needed.
 */
export class StdioServer implements LocalServer {
  readonly #options: StdioServerOptions;
  readonly #sessions = new Map<string, HostedProcess<StdioSession>>();
  readonly #hosted = new Set<HostedProcess<Peer>>();
  readonly #sessionDelay: RestartDelay;
  readonly #sharedDelay: RestartDelay;
  #shared: Promise<HostedProcess<SharedServer> | undefined> | undefined;
  /** Until when the program counts as one that does not speak the stateless revision. */
  #sessionsOnlyUntil = 0;
  #processes = 0;
  /** How many of them are for sessions of a virtual key. */
  readonly #ofKey = new Map<string, number>();
  /** How many of them are for the gateway's own probe. */
  #probes = 0;
  #restarts = 0;
  #lastEnd: StdioFacts['lastEnd'];
  #unavailable: string | undefined;
  #isClosed = false;

  constructor(options: StdioServerOptions) {
    this.#options = options;
    this.#sessionDelay = new RestartDelay(options.clock);
    this.#sharedDelay = new RestartDelay(options.clock);
  }

  facts(): StdioFacts {
    return {
      processes: this.#processes,
      sessions: this.#sessions.size,
      restarts: this.#restarts,
      waitingMs: Math.max(this.#sessionDelay.remainingMs, this.#sharedDelay.remainingMs),
      ...(this.#lastEnd && { lastEnd: this.#lastEnd }),
      ...(this.#unavailable !== undefined && { unavailable: this.#unavailable }),
    };
  }

  /**
   * Answers as an upstream at a URL does.
   *
   * @throws ProcessLost the process ended before it answered; the reason of the request's signal
   */
  async fetch(request: Request, key?: string): Promise<Response> {
    if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
    let message: Message | undefined;
    try {
      if (request.method !== 'POST') return await this.#manageSession(request);
      const read = readMessage(Buffer.from(await request.arrayBuffer()));
      if ('code' in read) return jsonResponse(400, rpcError(400, read.id, read.code, read.text).body);
      message = read;
      return await this.#post(request, message, key);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      const text = `The server ${error.message}.`;
      const { status, body } = rpcError(error.status, message?.id ?? null, SERVER_ERROR, text);
      return jsonResponse(status, body, { 'retry-after': String(Math.ceil(error.retryAfterMs / 1_000)) });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#hosted].map((hosted) => hosted.end('the gateway closes it')));
  }

  async #post(request: Request, message: Message, key?: string): Promise<Response> {
    const headers = Object.fromEntries(request.headers);
    if (eraOf(headers, message) === 'stateless') return this.#postShared(message, request.signal);
    if (message.method === 'initialize') return this.#begin(message, request.signal, key);
    const session = this.#sessionOf(request);
    return session instanceof Response ? session : session.peer.post(message, request.signal);
  }

  async #manageSession(request: Request): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'DELETE') {
      return new Response(null, { status: 405, headers: { allow: 'GET, POST, DELETE' } });
    }
    const session = this.#sessionOf(request);
    if (session instanceof Response) return session;
    if (request.method === 'GET') return session.peer.listen(request.signal);
    await session.end('its client ended the session');
    return new Response(null, { status: 200 });
  }

  #sessionOf(request: Request): HostedProcess<StdioSession> | Response {
    const id = request.headers.get('mcp-session-id');
    if (id === null) {
      const text = 'Bad Request: Mcp-Session-Id header is required';
      return jsonResponse(400, rpcError(400, null, SERVER_ERROR, text).body);
    }
    const { status, body } = sessionUnknown(undefined);
    return this.#sessions.get(id) ?? jsonResponse(status, body);
  }

  /** Starts a process for a new session. */
  async #begin(message: Message, signal: AbortSignal, key?: string): Promise<Response> {
    const { clock } = this.#options;
    const hosted = await this.#start(
      this.#sessionDelay,
      (process, onUse) => new StdioSession(process, clock, onUse),
      ({ peer }) => this.#sessions.delete(peer.id),
      { isForProbe: key === undefined && isProbe(message) && this.#probes === 0, key },
    );
    const { peer } = hosted;
    void hosted.ended.then((end) => {
      // What one client does in its session keeps no other one waiting.
      if (end.wanted || !peer.isInitialized) this.#sessionDelay.ended(end);
    });
    const cancelDeadline = clock.after(START_MS, () => void hosted.end('no answer to initialize', false));
    try {
      const response = await peer.post(message, signal);
      if (!peer.isInitialized) {
        void hosted.end('it refused initialize');
      } else if (!hosted.isEnding) {
        this.#sessionDelay.reset();
        this.#sessions.set(peer.id, hosted);
      }
      return response;
    } catch (error) {
      void hosted.end('its client left before it answered initialize');
      throw error;
    } finally {
      cancelDeadline();
    }
  }

  async #postShared(message: Message, signal: AbortSignal): Promise<Response> {
    if (this.#options.clock.monotonic() >= this.#sessionsOnlyUntil) {
      this.#shared ??= this.#startShared();
      const shared = await unlessAborted(this.#shared, signal);
      if (shared) return shared.peer.post(message, signal);
    }
    // What servers of earlier revisions answer, so that clients begin a session.
    const text = `Unsupported protocol version: ${message.revision ?? STATELESS_SINCE}`;
    const data = { supported: REVISIONS.filter((one) => !isStateless(one)), requested: message.revision };
    const { status, body } = rpcError(400, message.id ?? null, UNSUPPORTED_REVISION, text, data);
    return jsonResponse(status, body);
  }

  /** @returns undefined when the program does not speak the stateless revision */
  async #startShared(): Promise<HostedProcess<SharedServer> | undefined> {
    const { clock } = this.#options;
    const forget = () => {
      this.#shared = undefined;
    };
    try {
      const hosted = await this.#start(
        this.#sharedDelay,
        (process, onUse) => new SharedServer(process, clock, onUse),
        forget,
      );
      void hosted.ended.then((end) => this.#sharedDelay.ended(end));
      const speaks = await new Promise<boolean>((resolve, reject) => {
        const cancelDeadline = clock.after(START_MS, () => resolve(false));
        void hosted.ended.then(() =>
          reject(new Unavailable('ended when it was started', this.#sharedDelay.remainingMs)),
        );
        hosted.peer.discover().then(resolve, reject).finally(cancelDeadline);
      });
      if (speaks) {
        hosted.watchIdle();
        return hosted;
      }
      this.#sessionsOnlyUntil = clock.monotonic() + REMEMBER_MS;
      void hosted.end('it does not speak the stateless revision');
    } catch (error) {
      forget();
      throw error;
    }
    return undefined;
  }

  /**
   * @param isForProbe whether it may be one more than clients may have, and takes the place of none of theirs
   * @param key of the session that it is for
   * @throws Unavailable it may not, or can not, be started
   */
  async #start<P extends Peer>(
    delay: RestartDelay,
    connect: (process: ServerProcess, onUse: () => void) => P,
    onEnding: (hosted: HostedProcess<P>) => void,
    { isForProbe = false, key }: { readonly isForProbe?: boolean; readonly key?: string | undefined } = {},
  ): Promise<HostedProcess<P>> {
    const { remainingMs } = delay;
    const { logger, name, command, clock } = this.#options;
    if (this.#isClosed) throw new Unavailable('is being stopped');
    if (remainingMs > 0)
      throw new Unavailable('ended by itself, and is started again after a delay', remainingMs);
    const taken = isForProbe ? this.#processes - 1 : this.#processes - this.#probes;
    if (taken >= command.maxProcesses) {
      throw new Unavailable('runs in as many processes as it may', BUSY_MS);
    }
    const own = this.#ofKey.get(key ?? '') ?? 0;
    const most = command.maxProcessesPerKey ?? Math.max(1, Math.floor((command.maxProcesses * 3) / 4));
    if (key !== undefined && !isForProbe && own >= most) {
      const reason = `runs in as many processes for this key as it may (${most})`;
      throw new Unavailable(reason, BUSY_MS, { status: 429 });
    }
    const leave = () => this.#leave(isForProbe, key);
    this.#processes += 1;
    if (isForProbe) this.#probes += 1;
    if (key !== undefined) this.#ofKey.set(key, own + 1);
    try {
      const hosted = await HostedProcess.start(this.#options, connect, onEnding);
      this.#unavailable = undefined;
      this.#hosted.add(hosted);
      if (delay.takeRestart()) this.#restarts += 1;
      void hosted.ended.then((end) => {
        this.#hosted.delete(hosted);
        this.#lastEnd = { at: clock.now(), reason: end.reason, wanted: end.wanted };
        leave();
      });
      if (this.#isClosed) await hosted.end('the gateway closes it');
      return hosted;
    } catch (error) {
      leave();
      this.#unavailable = error instanceof Error ? error.message : String(error);
      logger.warn({ route: name, err: error }, 'gateway.server_unavailable');
      throw error;
    }
  }

  #leave(isForProbe: boolean, key: string | undefined): void {
    const left = (this.#ofKey.get(key ?? '') ?? 0) - 1;
    if (key !== undefined && left > 0) this.#ofKey.set(key, left);
    else if (key !== undefined) this.#ofKey.delete(key);
    this.#processes -= 1;
    if (isForProbe) this.#probes -= 1;
  }
}

/** A server that is busy must not look down: the probe's session has room beside those of clients. */
function isProbe({ body: { params } }: Message): boolean {
  return isObject(params) && isObject(params.clientInfo) && params.clientInfo.name === PROBE_NAME;
}
