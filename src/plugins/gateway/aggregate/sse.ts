import { randomBytes } from 'node:crypto';
import type { AnswerParams, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import { answerInvalid, decideUnread, type OpenedRequest, requireKey, UNREAD } from '../calls/endpoint.ts';
import type { HttpExchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { notFound, plainRefusal } from '../mcp/answers.ts';
import { mediaProblem } from '../mcp/protocol.ts';
import { stopped } from '../upstream/failures.ts';
import type { CallOutcome } from '../upstream/inspection.ts';
import { AggregateCall } from './aggregate-call.ts';
import { type Aggregate, readAggregate, targetOf } from './aggregate-request.ts';
import { SseExchange, SseStream } from './sse-stream.ts';

const EVENTS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
/**
 * The transport of clients from before streamable HTTP: a GET opens a stream and learns where to POST, and every answer
 * comes on the stream. A stream is a connection, so its session ends with it.
 */
export class SseMount {
  readonly path: string;
  readonly #aggregate: Aggregate;
  readonly #streams = new Map<string, SseStream>();

  constructor(path: string, aggregate: Aggregate) {
    this.path = path;
    this.#aggregate = aggregate;
  }

  /** Opens a stream; what the servers say by themselves comes on it, once its client has initialized. */
  open({ exchange, authenticated }: OpenedRequest): void {
    const aggregate = this.#aggregate;
    const { gateway } = aggregate;
    const key = requireKey(gateway, exchange, this.path, authenticated);
    if (!key) return;
    const media = mediaProblem('GET', exchange.headers);
    const target = targetOf(aggregate, exchange, this.path);
    if (media) {
      answerInvalid(gateway, exchange, key, media, target);
      return;
    }
    gateway.decisions.decide(new SseStreamCall(aggregate, exchange, key, this));
  }

  /** A message of a client; its answer goes to the stream. */
  receive({ exchange: http, authenticated, body }: OpenedRequest, id: unknown): void {
    const aggregate = this.#aggregate;
    const { gateway } = aggregate;
    const key = requireKey(gateway, http, this.path, authenticated);
    if (!key) return;
    const target = targetOf(aggregate, http, this.path);
    if (body === UNREAD) {
      decideUnread(gateway, http, key, target);
      return;
    }
    const stream = this.#streams.get(String(id));
    if (stream?.presented !== key.presented) {
      answerInvalid(gateway, http, key, notFound, target);
      return;
    }
    const exchange = new SseExchange(http, stream);
    const request = readAggregate(aggregate, exchange, key, body);
    if ('status' in request) {
      answerInvalid(gateway, http, key, request, target);
      return;
    }
    gateway.usage.keep(http.correlation, exchange);
    exchange.answers = request.message?.id;
    if (request.message?.method === 'notifications/initialized') stream.initialize();
    gateway.decisions.decide(new AggregateCall(aggregate, request, this.path));
  }

  /** Begins the stream of a client, and tells it where to POST. */
  begin(exchange: HttpExchange, { presented }: AuthenticatedKey, draining: AbortSignal): SseStream {
    const id = randomBytes(24).toString('base64url');
    const stream = new SseStream(exchange, presented, draining);
    this.#streams.set(id, stream);
    exchange.onClose(() => this.#streams.delete(id));
    exchange.begin(200, EVENTS);
    void stream.write(`event: endpoint\ndata: ${this.path}?session=${id}\n\n`);
    return stream;
  }
}

/** The GET of a client: a stream for as long as its key admits it. */
class SseStreamCall extends AggregateCall {
  readonly #begin: () => SseStream;

  constructor(aggregate: Aggregate, exchange: HttpExchange, key: AuthenticatedKey, mount: SseMount) {
    super(aggregate, { exchange, key, message: undefined, session: undefined }, mount.path);
    this.#begin = () => mount.begin(exchange, key, aggregate.draining);
  }

  protected override async carryOut(params: ForwardParams): Promise<CallOutcome> {
    const sealed = await this.#begin().initialized(this.signal);
    if (sealed === undefined) return stopped(this.exchange, this.signal, true);
    this.reopen(sealed);
    try {
      return await this.listen(params);
    } finally {
      await this.endSessions(params.routes, AbortSignal.timeout(this.deadlineMs));
    }
  }

  protected override refuse(params: AnswerParams): void {
    const refusal = plainRefusal(params, undefined);
    if (refusal) this.exchange.send(refusal);
    else this.#begin(); // connected, with nothing to see
  }
}
