import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../../core/kernel/clock.ts';
import { isObject } from '../../../../core/kernel/json.ts';
import { INVALID_REQUEST, rpcError } from '../../mcp/json-rpc.ts';
import type { Message } from '../../mcp/message.ts';
import { EventStream, jsonResponse, PostedAnswer } from './answer-stream.ts';
import { idKey, type StdioMessage } from './framing.ts';
import { ProcessLost, type ServerProcess } from './server-process.ts';

/** Messages that wait for a client to open its stream, which it does behind `initialize`; the oldest give way. */
const MOST_WAITING = 64;

/** What a server says of itself, and not of a request that runs. */
const UNRELATED: ReadonlySet<unknown> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
]);

/** A request that the server has not answered. */
interface Running {
  readonly message: Message;
  readonly answer: PostedAnswer;
  /** Undefined unless it wants to hear of progress. */
  readonly progressToken: string | undefined;
}

/** One client's session with a process of its own (revisions up to 2025-11-25). */
export class StdioSession {
  readonly id: string = randomUUID();
  readonly #process: ServerProcess;
  readonly #clock: Clock;
  readonly #onUse: () => void;
  /** In the order in which they came. */
  readonly #running = new Map<string, Running>();
  /** Streams that the client listens on, the newest last. */
  readonly #streams: EventStream[] = [];
  readonly #waiting: StdioMessage[] = [];
  #isInitialized = false;

  /** @param onUse called when it begins or ceases to be in use */
  constructor(process: ServerProcess, clock: Clock, onUse: () => void) {
    this.#process = process;
    this.#clock = clock;
    this.#onUse = onUse;
  }

  /** Whether a request runs or its client listens. */
  get isUsed(): boolean {
    return this.#running.size > 0 || this.#streams.length > 0;
  }

  /** Whether `initialize` was answered with a result. */
  get isInitialized(): boolean {
    return this.#isInitialized;
  }

  /**
   * Sends a message of the client to the server.
   *
   * @returns the answer to a request when it begins; 202 otherwise
   * @throws ProcessLost the server has ended; Unavailable it reads nothing; the reason of the signal
   */
  async post(message: Message, signal: AbortSignal): Promise<Response> {
    if (message.kind !== 'request') {
      this.#process.send(message.body);
      return new Response(null, { status: 202 });
    }
    const key = idKey(message.id);
    if (this.#running.has(key)) {
      const text = 'Invalid Request: a request with this id is running';
      return jsonResponse(400, rpcError(400, message.id ?? null, INVALID_REQUEST, text).body);
    }
    const answer = new PostedAnswer({
      clock: this.#clock,
      signal,
      onOver: () => {
        this.#running.delete(key);
        this.#onUse();
      },
    });
    if (!answer.isOver) {
      this.#running.set(key, { message, answer, progressToken: progressTokenOf(message.body) });
      this.#onUse();
      try {
        this.#process.send(message.body);
      } catch (error) {
        answer.fail(error as Error);
      }
    }
    return answer.response;
  }

  /** Opens a stream for what the server says without being asked. */
  listen(signal: AbortSignal): Response {
    const leave = () => {
      const index = this.#streams.indexOf(stream);
      if (index !== -1) this.#streams.splice(index, 1);
      this.#onUse();
    };
    const stream = new EventStream(this.#clock, leave);
    this.#streams.push(stream);
    this.#onUse();
    const stop = () => {
      stream.end();
      leave();
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    for (const message of this.#waiting.splice(0)) stream.send(message);
    return stream.response({ 'mcp-session-id': this.id });
  }

  /** Takes a message of the server to where its client hears it. */
  receive(message: StdioMessage): void {
    const { method, id } = message;
    if (typeof method !== 'string') {
      const running = this.#running.get(idKey(id));
      if (running) this.#answer(running, message); // nobody waits for the answer to any other
      return;
    }
    const listener = this.#relatedTo(method, message)?.answer ?? this.#streams.at(-1);
    if (listener) {
      listener.send(message);
    } else {
      this.#waiting.push(message);
      if (this.#waiting.length > MOST_WAITING) this.#waiting.shift();
    }
  }

  /** Ends what is open: requests break off, streams end. */
  close(reason: string): void {
    const lost = new ProcessLost(reason);
    for (const { answer } of [...this.#running.values()]) answer.fail(lost);
    for (const stream of this.#streams.splice(0)) stream.end();
  }

  #answer({ message, answer }: Running, given: StdioMessage): void {
    const own = { ...given, id: message.id }; // as the client wrote it
    const begins = message.method === 'initialize' && isObject(given.result);
    if (begins) this.#isInitialized = true;
    answer.answer(own, 200, begins ? { 'mcp-session-id': this.id } : {});
  }

  /** @returns the request on whose stream a message belongs; undefined for the client's own stream */
  #relatedTo(method: string, { params }: StdioMessage): Running | undefined {
    const running = [...this.#running.values()].filter((one) => one.message.method !== 'initialize');
    if (method === 'notifications/progress' && isObject(params)) {
      const token = idKey(params.progressToken);
      return running.find((one) => one.progressToken === token);
    }
    if (UNRELATED.has(method)) return undefined;
    return running.at(-1);
  }
}

/** @returns a request's progress token as a key; undefined when it has none */
function progressTokenOf({ params }: Message['body']): string | undefined {
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  return meta.progressToken === undefined ? undefined : idKey(meta.progressToken);
}
