import { isObject } from '../../../core/kernel/json.ts';
import type { Exchange } from '../exchange.ts';
import { type Answer, type RequestId, rpcError, SERVER_ERROR } from '../mcp/json-rpc.ts';
import { messageEvent } from '../mcp/message.ts';
import { ByteBuffer } from '../upstream/body.ts';
import { isEvents } from '../upstream/request.ts';

const EVENTS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
/** Bytes of an answer in JSON that is held until it is whole, because it becomes one event. */
const MOST_HELD = 16 * 1024 * 1024;

/**
 * The exchange of a call that waits: what it hears meanwhile begins an event stream, and its answer, whatever it is, is then
 * the last part of that stream. Until something was said, the answer is sent as without a wait.
 */
export class ParkedExchange implements Exchange {
  readonly #inner: Exchange;
  readonly #id: RequestId;
  #isStream = false;
  #isAnswered = false;
  /** How long it waited, milliseconds. */
  #waitedMs = 0;
  readonly #parkedAt: number;
  #held: ByteBuffer | undefined;

  /** @param id of the request */
  constructor(inner: Exchange, id: RequestId) {
    this.#inner = inner;
    this.#id = id;
    this.#parkedAt = inner.ms;
  }

  get method() {
    return this.#inner.method;
  }

  get headers() {
    return this.#inner.headers;
  }

  get correlation(): string {
    return this.#inner.correlation;
  }

  get facts() {
    return this.#inner.facts;
  }

  get hasLeft(): boolean {
    return this.#inner.hasLeft;
  }

  get isBehind(): boolean {
    return this.#inner.isBehind;
  }

  /** Whether a part of the answer itself was sent. */
  get begun(): boolean {
    return this.#isStream ? this.#isAnswered : this.#inner.begun;
  }

  get status(): number | undefined {
    return this.#inner.status;
  }

  get bytes(): number {
    return this.#inner.bytes;
  }

  /** Without the wait for a person, which says nothing of the upstream. */
  get ms(): number {
    return Math.round((this.#inner.ms - this.#waitedMs) * 10) / 10;
  }

  /** The wait is over, and the call goes to its upstream. */
  endWait(): void {
    this.#waitedMs = this.#inner.ms - this.#parkedAt;
  }

  /** Says something before the answer; nothing to a client that has yet to read what was said. */
  say(events: string): void {
    if (this.begun || this.hasLeft) return;
    this.#openStream();
    if (!this.isBehind) void this.#inner.write(events);
  }

  /** Ends without an answer, for a client that wants none any more. */
  endUnanswered(): void {
    if (this.begun || this.hasLeft) return;
    this.#openStream();
    this.#isAnswered = true;
    this.#inner.end();
  }

  onClose(listener: () => void): () => void {
    return this.#inner.onClose(listener);
  }

  admitted(signal: AbortSignal): void {
    this.#inner.admitted(signal);
  }

  send(answer: Answer): void {
    if (!this.#isStream) {
      this.#inner.send(answer);
      return;
    }
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    const { status, body } = answer;
    const isRpc = isObject(body) && body.jsonrpc === '2.0';
    const text = isObject(body) && typeof body.detail === 'string' ? body.detail : `status ${status}`;
    const message = isRpc ? body : rpcError(status, this.#id, SERVER_ERROR, text).body;
    void this.#inner.write(messageEvent(JSON.stringify(message)));
    this.#inner.end();
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    if (!this.#isStream) {
      this.#inner.begin(status, headers);
      return;
    }
    this.#isAnswered = true;
    if (!isEvents(headers['content-type'] ?? '')) this.#held = new ByteBuffer(MOST_HELD);
  }

  flush(): void {
    if (!this.#isStream) this.#inner.flush();
  }

  /** @throws RangeError an answer in JSON is too large for one event */
  write(chunk: Buffer | string): Promise<void> | undefined {
    return this.#held ? this.#held.push(Buffer.from(chunk)) : this.#inner.write(chunk);
  }

  end(last?: Buffer | string): void {
    if (!this.#held) {
      this.#inner.end(last);
      return;
    }
    if (last !== undefined) void this.write(last);
    const json = this.#held
      .bytes()
      .toString('utf8')
      .replaceAll(/[\r\n]+/g, ' ');
    void this.#inner.write(messageEvent(json));
    this.#held = undefined;
    this.#inner.end();
  }

  cut(): void {
    this.#inner.cut();
  }

  reset(): void {
    this.#inner.reset();
  }

  #openStream(): void {
    if (this.#isStream) return;
    this.#isStream = true;
    this.#inner.begin(200, EVENTS);
    this.#inner.flush();
  }
}
