import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../../core/kernel/json.ts';
import type { ClientExchange } from '../calls/client-exchange.ts';
import type { Exchange } from '../exchange.ts';
import { type Answer, rpcError } from '../mcp/answers.ts';
import { INTERNAL_ERROR } from '../mcp/codes.ts';
import type { RequestId } from '../mcp/message.ts';
import type { Ending } from '../stop.ts';
import { Gathered } from '../upstream/body.ts';
import { isEvents } from '../upstream/headers.ts';
import { LARGEST, messageIn } from './listen.ts';
import { SELECTION_HEADER } from './selection.ts';
import type { SseStream } from './sse-stream.ts';

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
