import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../../core/kernel/json.ts';
import { admit } from '../calls/admit.ts';
import type { ClientExchange } from '../calls/client-exchange.ts';
import { ended, type LiveCall } from '../calls/live-call.ts';
import { answerInvalid, judgeUnread } from '../calls/unforwarded.ts';
import { UNREAD } from '../calls/unread.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { type Answer, INTERNAL_ERROR, notFound, plainRefusal, rpcError } from '../mcp/answers.ts';
import type { RequestId } from '../mcp/message.ts';
import { mediaProblem } from '../mcp/protocol.ts';
import { type Ending, stopWith } from '../stop.ts';
import { Gathered } from '../upstream/body.ts';
import { stopped } from '../upstream/failures.ts';
import { isEvents } from '../upstream/request.ts';
import { type Aggregate, callOf, judgeAggregate, meantBy, readAggregate, reopen } from './aggregate.ts';
import { LARGEST, messageIn } from './read-answer.ts';
import { SELECTION_HEADER } from './selection.ts';

const EVENTS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };

/**
 * The transport of clients from before streamable HTTP: a GET opens a stream and learns where to POST, and every answer
 * comes on the stream. A stream is a connection, so its session ends with it.
 */
export class SseMount {
  readonly #path: string;
  readonly #aggregate: () => Aggregate;
  readonly #streams = new Map<string, SseStream>();

  constructor(path: string, aggregate: () => Aggregate) {
    this.#path = path;
    this.#aggregate = aggregate;
  }

  /** Opens a stream; what the servers say by themselves comes on it, once its client has initialized. */
  async open(exchange: ClientExchange): Promise<void> {
    const aggregate = this.#aggregate();
    const caller = admit(aggregate.parts, exchange, this.#path);
    if (!caller) return;
    const media = mediaProblem('GET', exchange.headers);
    const meant = meantBy(aggregate, exchange, this.#path);
    if (media) return answerInvalid(aggregate.parts, exchange, caller, media, meant);
    const request = { exchange, caller, message: undefined, session: undefined };
    const call: LiveCall = {
      forward: async (params, stop) => {
        const stream = this.#begin(exchange, caller, aggregate.draining);
        stop.follow(stream.over);
        const sealed = await stream.initialized(stop);
        if (sealed === undefined) return ended(exchange, stopped({ exchange }, stop, true));
        const session = reopen(aggregate, caller, sealed);
        const listening = callOf(aggregate, { ...request, session });
        try {
          return await listening.listen(params, stop);
        } finally {
          await listening.end(params.routes, AbortSignal.timeout(aggregate.deadlineMs));
        }
      },
      answer: (params) => {
        const refusal = plainRefusal(params, undefined);
        if (refusal) exchange.send(refusal);
        else this.#begin(exchange, caller, aggregate.draining); // connected, with nothing to see
        return ended(exchange, { outcome: 'answered' });
      },
    };
    await judgeAggregate(aggregate, request, this.#path, call);
  }

  /** A message of a client; its answer goes to the stream. */
  async receive(http: ClientExchange, id: unknown, body: unknown): Promise<void> {
    const aggregate = this.#aggregate();
    const caller = admit(aggregate.parts, http, this.#path);
    if (!caller) return;
    const { parts } = aggregate;
    const meant = meantBy(aggregate, http, this.#path);
    if (body === UNREAD) return judgeUnread(parts, http, caller, meant);
    const stream = this.#streams.get(String(id));
    if (stream?.presented !== caller.presented) return answerInvalid(parts, http, caller, notFound, meant);
    const exchange = new SseExchange(http, stream);
    const request = readAggregate(aggregate, exchange, caller, body);
    if ('status' in request) return answerInvalid(parts, http, caller, request, meant);
    parts.bodies.keep(http.correlation, exchange);
    exchange.answers = request.message?.id;
    if (request.message?.method === 'notifications/initialized') stream.initialize();
    await judgeAggregate(aggregate, request, this.#path, accepting(exchange, callOf(aggregate, request)));
  }

  #begin(exchange: ClientExchange, { presented }: AuthenticatedKey, draining: Ending): SseStream {
    const id = randomBytes(24).toString('base64url');
    const stream = new SseStream(exchange, presented, draining);
    this.#streams.set(id, stream);
    exchange.onClose(() => this.#streams.delete(id));
    exchange.begin(200, EVENTS);
    void stream.write(`event: endpoint\ndata: ${this.#path}?session=${id}\n\n`);
    return stream;
  }
}

/** Says 202 as soon as a message is admitted: its answer may take long. */
function accepting(exchange: SseExchange, call: LiveCall): LiveCall {
  return {
    forward: (params, stop) => {
      exchange.accept();
      return call.forward(params, stop);
    },
    answer: (params) => call.answer(params),
  };
}

/** Bytes that a client may leave unread: its answers come by requests of its own, which no slow reading holds up. */
const MOST_UNREAD = 16 * 1024 * 1024;

/** The stream of one client of the old transport. */
export class SseStream {
  /** Id of the key's value that opened it. */
  readonly presented: string;
  /** Aborted when the client has left, or the gateway stops. */
  readonly over: Ending;
  readonly #exchange: ClientExchange;
  readonly #initialized = Promise.withResolvers<void>();
  /** The sealed session; undefined until the client has one. */
  session: string | undefined;

  constructor(exchange: ClientExchange, presented: string, draining: Ending) {
    this.#exchange = exchange;
    this.presented = presented;
    const over = stopWith(exchange.gone, draining);
    const end = () => exchange.end();
    draining.addEventListener('abort', end);
    exchange.onClose(() => {
      draining.removeEventListener('abort', end);
      over.release();
    });
    this.over = over;
  }

  get gone(): Ending {
    return this.#exchange.gone;
  }

  /** Of the GET; a POST that does not choose means the same servers. */
  get selection(): string | string[] | undefined {
    return this.#exchange.headers[SELECTION_HEADER];
  }

  initialize(): void {
    this.#initialized.resolve();
  }

  /** @returns the sealed session once the client has initialized; undefined when it leaves before */
  async initialized(stop: Ending): Promise<string | undefined> {
    const stopped = Promise.withResolvers<void>();
    const leave = () => stopped.resolve();
    stop.addEventListener('abort', leave);
    if (!stop.aborted) await Promise.race([this.#initialized.promise, stopped.promise]);
    stop.removeEventListener('abort', leave);
    return stop.aborted ? undefined : this.session;
  }

  write(events: Buffer | string): Promise<void> | undefined {
    const room = this.#exchange.write(events);
    if (this.#exchange.unread > MOST_UNREAD) this.#exchange.cut();
    return room;
  }
}

/** A message that came by POST and is answered on the stream. */
export class SseExchange implements Exchange {
  readonly method = 'POST';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  readonly facts: Exchange['facts'] = {};
  /** Id of the request that is answered; undefined for a message without an answer. */
  answers: RequestId | undefined;
  status: number | undefined;
  bytes = 0;
  readonly #http: ClientExchange;
  readonly #stream: SseStream;
  readonly #closed: (() => void)[] = [];
  /** An answer in JSON is one event, so it is held until it is whole. */
  #held: Gathered | undefined;

  constructor(http: ClientExchange, stream: SseStream) {
    const selection = http.headers[SELECTION_HEADER] ?? stream.selection;
    this.headers = {
      ...http.headers,
      accept: 'application/json, text/event-stream',
      'mcp-session-id': stream.session,
      ...(selection !== undefined && { [SELECTION_HEADER]: selection }),
    };
    this.correlation = http.correlation;
    this.#http = http;
    this.#stream = stream;
  }

  get gone(): Ending {
    return this.#stream.gone;
  }

  get begun(): boolean {
    return this.status !== undefined;
  }

  get ms(): number {
    return this.#http.ms;
  }

  onClose(listener: () => void): void {
    this.#closed.push(listener);
  }

  /** Tells the POST that its message was taken. */
  accept(): void {
    this.#http.send({ status: 202 });
  }

  send({ status, body, headers = {} }: Answer): void {
    if (this.begun) return;
    this.status = status;
    this.#stream.session = headers['mcp-session-id'] ?? this.#stream.session;
    const isRpc = isObject(body) && body.jsonrpc === '2.0';
    if (this.answers === undefined || (!isRpc && !this.#http.begun)) {
      this.#http.send({ status, headers, ...(body !== undefined && { body }) });
    } else {
      this.accept();
      this.#event(
        isRpc
          ? body
          : rpcError(200, this.answers, INTERNAL_ERROR, `The gateway answers with status ${status}.`).body,
      );
    }
    this.#close();
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.status = status;
    this.accept();
    if (!isEvents(headers['content-type'] ?? '')) this.#held = new Gathered();
  }

  flush(): void {}

  write(chunk: Buffer | string): Promise<void> | undefined {
    this.bytes += chunk.length;
    if (!this.#held) return this.#stream.write(chunk);
    if (this.bytes <= LARGEST) this.#held.push(Buffer.from(chunk));
    return undefined;
  }

  end(last?: Buffer | string): void {
    if (last !== undefined) void this.write(last);
    if (this.#held) this.#event(this.#whole(this.#held.bytes()));
    this.#held = undefined;
    this.#close();
  }

  /** The stream goes on for others: only this request has failed. */
  cut(): void {
    if (this.answers !== undefined) {
      this.#event(rpcError(200, this.answers, INTERNAL_ERROR, 'The answer broke off.').body);
    }
    this.#close();
  }

  #whole(answer: Buffer): unknown {
    try {
      const message = this.bytes <= LARGEST ? messageIn(answer.toString('utf8')) : undefined;
      if (message !== undefined) return message;
    } catch {
      // said below
    }
    return rpcError(
      200,
      this.answers ?? null,
      INTERNAL_ERROR,
      'The upstream answers with what can not be passed on.',
    ).body;
  }

  #event(message: unknown): void {
    const event = `event: message\ndata: ${JSON.stringify(message)}\n\n`;
    this.bytes ||= event.length;
    void this.#stream.write(event);
  }

  #close(): void {
    for (const listener of this.#closed.splice(0)) listener();
  }
}
