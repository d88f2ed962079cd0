import { newCorrelation } from '../../../core/kernel/clock.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { Exchange, HttpExchange } from '../exchange.ts';
import {
  type Answer,
  INTERNAL_ERROR,
  INVALID_REQUEST,
  type RequestId,
  rpcError,
  SERVER_ERROR,
} from '../mcp/json-rpc.ts';
import { isRequestId, parseBody } from '../mcp/message.ts';
import { mediaProblem } from '../mcp/protocol.ts';
import type { Session } from '../session/sealed-sessions.ts';
import { ByteBuffer } from '../upstream/body.ts';
import { EventBlocks } from '../upstream/events.ts';

/** The only revision with batches (2025-03-26, "Sending Messages to the Server"). */
const REVISION = '2025-03-26';
const MOST_MESSAGES = 50;
/** Bytes of JSON answers that one batch may have held: each becomes one event when it is whole. */
const MOST_HELD = 16 * 1024 * 1024;

/** Whether a body is a JSON-RPC batch: a list. */
export function isBatch(body: unknown): body is Buffer {
  if (!Buffer.isBuffer(body)) return false;
  const first = body[0];
  if (first !== undefined && first > 0x20) return first === 0x5b;
  return /^[ \t\r\n]*\[/.test(body.toString('latin1', 0, 1_024));
}

/**
 * Takes a batch apart: each message is received, decided, charged and forwarded like one that came alone, and all their
 * answers come in one event stream, as they are there.
 *
 * @param session that the request names, if it is the caller's
 * @param receive takes one message
 * @returns the answer to what is wrong with the batch as a whole
 */
export function takeBatch(
  exchange: HttpExchange,
  body: Buffer,
  session: Session | undefined,
  receive: (part: Exchange, body: Buffer) => void,
): Answer | undefined {
  const media = mediaProblem('POST', exchange.headers);
  if (media) return media;
  const named = exchange.headers['mcp-protocol-version'] ?? REVISION;
  if (session && (session.version !== REVISION || named !== REVISION)) {
    return invalid(`a batch is part of revision ${REVISION} alone`);
  }
  const parsed = parseBody(body);
  if ('code' in parsed) return rpcError(400, parsed.id, parsed.code, parsed.text);
  const messages = Array.isArray(parsed.value) ? parsed.value : [];
  if (messages.length === 0) return invalid('the batch is empty');
  if (messages.length > MOST_MESSAGES) return invalid(`a batch has ${MOST_MESSAGES} messages at most`);
  if (messages.some((message) => isObject(message) && message.method === 'initialize')) {
    return invalid('initialize is no part of a batch');
  }
  const answers = new BatchAnswers(exchange, messages.length);
  const parts = messages.map((message) => new BatchPart(exchange, answers, requestId(message)));
  for (const [index, part] of parts.entries()) receive(part, Buffer.from(JSON.stringify(messages[index])));
  return undefined;
}

const invalid = (what: string): Answer => rpcError(400, null, INVALID_REQUEST, `Invalid Request: ${what}`);

/** @returns the id of a request; undefined for what gets no answer */
function requestId(message: unknown): RequestId | undefined {
  if (!isObject(message) || message.method === undefined || !isRequestId(message.id)) return undefined;
  return message.id as RequestId;
}

/** The answers to the messages of one batch. */
class BatchAnswers {
  readonly #http: HttpExchange;
  /** Answers without the stream that they would begin: when all messages are refused alike, the first is the answer. */
  #refusals: { readonly answer: Answer; readonly event: string }[] = [];
  #open: number;
  #held = 0;

  /** @param count of messages */
  constructor(http: HttpExchange, count: number) {
    this.#http = http;
    this.#open = count;
  }

  /** Sends whole events. */
  write(events: string): Promise<void> | undefined {
    this.#begin();
    return this.#http.write(events);
  }

  refuse(answer: Answer, event: string): void {
    if (this.#http.begun) void this.write(event);
    else this.#refusals.push({ answer, event });
  }

  /** One message has its answer, or needs none. */
  end(): void {
    this.#open -= 1;
    if (this.#open > 0 || this.#http.hasLeft) return;
    const whole = this.#http.begun ? undefined : this.#wholeAnswer();
    if (whole) {
      this.#http.send(whole);
      return;
    }
    this.#begin();
    this.#http.end();
  }

  /** Counts bytes of answers that are held until they are whole. @throws RangeError they are too many */
  hold(bytes: number): void {
    this.#held += bytes;
    if (this.#held > MOST_HELD) throw new RangeError('the answers to a batch are too large');
  }

  /** @returns the one answer to all messages, where none of them begins the stream */
  #wholeAnswer(): Answer | undefined {
    const [first] = this.#refusals;
    if (!first) return { status: 202 };
    const isAlike = this.#refusals.every(({ answer }) => answer.status === first.answer.status);
    return isAlike ? first.answer : undefined;
  }

  #begin(): void {
    if (this.#http.begun) return;
    this.#http.begin(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    const refusals = this.#refusals;
    this.#refusals = [];
    for (const { event } of refusals) void this.#http.write(event);
  }
}

const eventOf = (json: string): string => `data: ${json.replaceAll(/[\r\n]+/g, ' ')}\n\n`;

/** One message of a batch: an exchange whose answer becomes events of the batch's stream. */
class BatchPart implements Exchange {
  readonly method = 'POST';
  readonly headers: Exchange['headers'];
  readonly correlation: string = newCorrelation();
  readonly facts: Exchange['facts'] = {};
  readonly #http: HttpExchange;
  readonly #answers: BatchAnswers;
  readonly #id: RequestId | undefined;
  readonly #startedMs: number;
  readonly #blocks = new EventBlocks();
  readonly #json = new ByteBuffer();
  #onClose: (() => void)[] = [];
  #status: number | undefined;
  #isStream = false;
  #isOver = false;
  #bytes = 0;

  /** @param id of a request; undefined for a message that gets no answer */
  constructor(http: HttpExchange, answers: BatchAnswers, id: RequestId | undefined) {
    this.#http = http;
    this.#answers = answers;
    this.#id = id;
    this.headers = { ...http.headers };
    this.#startedMs = http.ms;
    http.onClose(() => this.#close());
  }

  get hasLeft(): boolean {
    return this.#http.hasLeft;
  }

  get isBehind(): boolean {
    return this.#http.isBehind;
  }

  get begun(): boolean {
    return this.#status !== undefined;
  }

  get status(): number | undefined {
    return this.#status;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get ms(): number {
    return Math.round((this.#http.ms - this.#startedMs) * 10) / 10;
  }

  onClose(listener: () => void): () => void {
    if (this.#isOver) listener();
    else this.#onClose.push(listener);
    return () => {
      this.#onClose = this.#onClose.filter((one) => one !== listener);
    };
  }

  /** All messages have the same key, whose end ends them all. */
  admitted(signal: AbortSignal): void {
    this.#http.admitted(signal);
  }

  send(answer: Answer): void {
    if (this.begun || this.#isOver) return;
    const { status, body } = answer;
    this.#status = status;
    const isRpc = isObject(body) && body.jsonrpc === '2.0';
    const text = isObject(body) && typeof body.detail === 'string' ? body.detail : `status ${status}`;
    const message = isRpc ? body : rpcError(status, this.#id ?? null, SERVER_ERROR, text).body;
    const json = JSON.stringify(message);
    this.#bytes = json.length;
    if (status >= 400) this.#answers.refuse(answer, this.#id === undefined ? '' : eventOf(json));
    else if (body !== undefined) void this.#answers.write(eventOf(json));
    this.#finish();
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#status = status;
    this.#isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
  }

  flush(): void {
    // the stream begins with its first event
  }

  write(chunk: Buffer | string): Promise<void> | undefined {
    const bytes = Buffer.from(chunk);
    this.#bytes += bytes.length;
    if (!this.#isStream) {
      this.#answers.hold(bytes.length);
      return this.#json.push(bytes);
    }
    const events = this.#blocks.push(bytes).join('');
    return events === '' ? undefined : this.#answers.write(events);
  }

  end(last?: Buffer | string): void {
    if (last !== undefined) void this.write(last);
    if (!this.#isStream) void this.#answers.write(eventOf(this.#json.bytes().toString('utf8')));
    this.#finish();
  }

  cut(): void {
    if (this.#isOver) return;
    const error = rpcError(200, this.#id ?? null, INTERNAL_ERROR, 'The answer broke off.');
    if (this.#id !== undefined) void this.#answers.write(eventOf(JSON.stringify(error.body)));
    this.#finish();
  }

  reset(): void {
    this.#http.reset();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#close();
    this.#answers.end();
  }

  #close(): void {
    this.#isOver = true;
    const listeners = this.#onClose;
    this.#onClose = [];
    for (const listener of listeners) listener();
  }
}
