import type { Clock } from '../../../../core/kernel/clock.ts';
import { messageEvent } from '../../mcp/message.ts';
import type { StdioMessage } from './framing.ts';
import { ProcessLost } from './server-process.ts';

/** What a stream holds for a client that does not read, bytes: one that reads slower is cut off. */
const MOST_HELD = 16 * 1024 * 1024;
/** A comment so often keeps a silent stream open through proxies. */
const KEEP_ALIVE_MS = 15_000;

const EVENT_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
} as const;

const encoder = new TextEncoder();

/** An event stream of messages to one client. */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #clock: Clock;
  readonly #onLeave: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #cancelKeepAlive: () => void = () => {};

  /** @param onLeave called when the client has left, or was cut off because it does not read */
  constructor(clock: Clock, onLeave: () => void) {
    this.#clock = clock;
    this.#onLeave = onLeave;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => this.#leave(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MOST_HELD }),
    );
    this.#keepAlive();
  }

  send(message: StdioMessage): void {
    this.#write(messageEvent(JSON.stringify(message)));
  }

  end(): void {
    this.#close((controller) => controller.close());
  }

  /** Breaks it off, so that it does not look whole. */
  fail(error: Error): void {
    this.#close((controller) => controller.error(error));
  }

  response(headers: Readonly<Record<string, string>>): Response {
    return new Response(this.body, { headers: { ...EVENT_HEADERS, ...headers } });
  }

  #write(text: string): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    if ((controller.desiredSize ?? 0) > 0) {
      controller.enqueue(encoder.encode(text));
    } else {
      this.fail(new ProcessLost('the client does not read its stream'));
      this.#onLeave();
    }
  }

  #leave(): void {
    this.#close(() => {});
    this.#onLeave();
  }

  #close(by: (controller: ReadableStreamDefaultController<Uint8Array>) => void): void {
    const controller = this.#controller;
    this.#controller = undefined;
    this.#cancelKeepAlive();
    if (controller) by(controller);
  }

  #keepAlive(): void {
    this.#cancelKeepAlive = this.#clock.after(KEEP_ALIVE_MS, () => {
      this.#write(': keepalive\n\n');
      if (this.#controller) this.#keepAlive();
    });
  }
}

export interface PostedAnswerOptions {
  readonly clock: Clock;
  /** Ends when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Called once when it is over: answered, failed, or left by its client. */
  readonly onOver: (how: 'answered' | 'left') => void;
}

/**
 * The answer to one request: JSON when the answer itself comes first, and an event stream when other messages come before it.
 * The official transport answers every request by a stream at once: no deadline for an answer's beginning would hold, and a
 * process that dies would have answered already.
 */
export class PostedAnswer {
  readonly #options: PostedAnswerOptions;
  readonly #response: Promise<Response>;
  #resolve: (response: Response) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #stream: EventStream | undefined;
  #isOver = false;
  readonly #leave = (): void => {
    const { reason } = this.#options.signal;
    this.#reject(reason);
    this.#stream?.fail(reason instanceof Error ? reason : new ProcessLost('nobody waits for the answer'));
    this.#over('left');
  };

  constructor(options: PostedAnswerOptions) {
    this.#options = options;
    this.#response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    options.signal.addEventListener('abort', this.#leave, { once: true });
    if (options.signal.aborted) this.#leave();
  }

  /** Resolves when the answer begins; rejects when there is none. */
  get response(): Promise<Response> {
    return this.#response;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends a message that comes before the answer. */
  send(message: StdioMessage): void {
    if (this.#isOver) return;
    if (!this.#stream) {
      this.#stream = new EventStream(this.#options.clock, () => this.#over('left'));
      this.#resolve(this.#stream.response({}));
    }
    this.#stream.send(message);
  }

  /** Sends the answer itself. */
  answer(message: StdioMessage, status = 200, headers: Readonly<Record<string, string>> = {}): void {
    if (this.#isOver) return;
    if (this.#stream) {
      this.#stream.send(message);
      this.#stream.end();
    } else {
      this.#resolve(jsonResponse(status, message, headers));
    }
    this.#over('answered');
  }

  /** Ends a stream that has no answer; without a stream there is none to end. */
  end(): void {
    if (this.#isOver || !this.#stream) return;
    this.#stream.end();
    this.#over('answered');
  }

  /** Breaks it off. */
  fail(error: Error): void {
    if (this.#isOver) return;
    this.#reject(error);
    this.#stream?.fail(error);
    this.#over('answered');
  }

  #over(how: 'answered' | 'left'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.signal.removeEventListener('abort', this.#leave);
    this.#options.onOver(how);
  }
}

export function jsonResponse(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}
