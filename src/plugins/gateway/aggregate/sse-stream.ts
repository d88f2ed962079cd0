import type { IncomingHttpHeaders } from 'node:http';
import { unlessAborted } from '../../../core/host/deadline.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { Exchange, HttpExchange } from '../exchange.ts';
import { type Answer, INTERNAL_ERROR, type RequestId, rpcError } from '../mcp/json-rpc.ts';
import { messageEvent } from '../mcp/message.ts';
import { ByteBuffer } from '../upstream/body.ts';
import { LARGEST, messageIn } from '../upstream/read-answer.ts';
import { isEvents } from '../upstream/request.ts';
import { SELECTION_HEADER } from './selection.ts';
import { TOOL_SEARCH_HEADER } from './tool-search.ts';

/** Bytes that a client may leave unread: its answers come by requests of its own, which no slow reading holds up. */
const MOST_UNREAD = 16 * 1024 * 1024;

/** The stream of one client of the old transport. */
export class SseStream {
  /** Id of the key's value that opened it. */
  readonly presented: string;
  readonly #exchange: HttpExchange;
  readonly #initialized = Promise.withResolvers<void>();
  /** The sealed session; undefined until the client has one. */
  session: string | undefined;

  constructor(exchange: HttpExchange, presented: string, draining: AbortSignal) {
    this.#exchange = exchange;
    this.presented = presented;
    const end = () => exchange.end();
    draining.addEventListener('abort', end);
    exchange.onClose(() => draining.removeEventListener('abort', end));
  }

  get hasLeft(): boolean {
    return this.#exchange.hasLeft;
  }

  /** Calls back once when the stream ends. @returns does not call back any more */
  onClose(listener: () => void): () => void {
    return this.#exchange.onClose(listener);
  }

  /** The servers that the GET chooses; a POST that does not choose means the same ones. */
  get selection(): string | string[] | undefined {
    return this.#exchange.headers[SELECTION_HEADER];
  }

  /** Whether the GET asks for a search in place of all tools; so does each POST behind it. */
  get toolSearch(): string | string[] | undefined {
    return this.#exchange.headers[TOOL_SEARCH_HEADER];
  }

  initialize(): void {
    this.#initialized.resolve();
  }

  /** @returns the sealed session once the client has initialized; undefined when it leaves before */
  async initialized(stop: AbortSignal): Promise<string | undefined> {
    await unlessAborted(this.#initialized.promise, stop).catch(() => undefined);
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
  readonly #http: HttpExchange;
  readonly #stream: SseStream;
  #closed: (() => void)[] = [];
  /** An answer in JSON is one event, so it is held until it is whole. */
  #held: ByteBuffer | undefined;

  constructor(http: HttpExchange, stream: SseStream) {
    const selection = http.headers[SELECTION_HEADER] ?? stream.selection;
    const toolSearch = http.headers[TOOL_SEARCH_HEADER] ?? stream.toolSearch;
    this.headers = {
      ...http.headers,
      accept: 'application/json, text/event-stream',
      'mcp-session-id': stream.session,
      ...(selection !== undefined && { [SELECTION_HEADER]: selection }),
      ...(toolSearch !== undefined && { [TOOL_SEARCH_HEADER]: toolSearch }),
    };
    this.correlation = http.correlation;
    this.#http = http;
    this.#stream = stream;
    this.#closed.push(stream.onClose(() => this.#close()));
  }

  get hasLeft(): boolean {
    return this.#stream.hasLeft;
  }

  /** One message does not decide about a stream that goes on for others. */
  get isBehind(): boolean {
    return false;
  }

  get begun(): boolean {
    return this.status !== undefined;
  }

  get ms(): number {
    return this.#http.ms;
  }

  onClose(listener: () => void): () => void {
    this.#closed.push(listener);
    return () => {
      this.#closed = this.#closed.filter((one) => one !== listener);
    };
  }

  /** Answers the POST that its message was taken. */
  admitted(): void {
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
      this.admitted();
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
    this.admitted();
    if (!isEvents(headers['content-type'] ?? '')) this.#held = new ByteBuffer();
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

  /** What was sent belongs to the stream, which the end of its key resets. */
  reset(): void {
    this.cut();
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
    const event = messageEvent(JSON.stringify(message));
    this.bytes ||= event.length;
    void this.#stream.write(event);
  }

  #close(): void {
    for (const listener of this.#closed.splice(0)) listener();
  }
}
