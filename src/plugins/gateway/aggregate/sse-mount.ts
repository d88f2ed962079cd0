import { randomBytes } from 'node:crypto';
import { admit } from '../calls/admit.ts';
import type { ClientExchange } from '../calls/client-exchange.ts';
import { ended, type LiveCall } from '../calls/live-call.ts';
import { answerInvalid, judgeUnread } from '../calls/unforwarded.ts';
import { UNREAD } from '../calls/unread.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { notFound, plainRefusal } from '../mcp/answers.ts';
import { mediaProblem } from '../mcp/checks.ts';
import type { Ending } from '../stop.ts';
import { stopped } from '../upstream/stopped.ts';
import { type Aggregate, callOf, judgeAggregate, meantBy, readAggregate, reopen } from './aggregate.ts';
import { SseExchange } from './sse-exchange.ts';
import { SseStream } from './sse-stream.ts';

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
