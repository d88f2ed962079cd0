import type { Clock } from '../../../../core/kernel/clock.ts';
import { isObject } from '../../../../core/kernel/json.ts';
import { version } from '../../../../core/kernel/version.ts';
import { HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_REVISION } from '../../mcp/json-rpc.ts';
import { type Message, REVISION_META } from '../../mcp/message.ts';
import { STATELESS_SINCE } from '../../mcp/protocol.ts';
import { PostedAnswer } from './answer-stream.ts';
import type { StdioMessage } from './framing.ts';
import { ProcessLost, type ServerProcess } from './server-process.ts';

/** Where a message names the subscription that it belongs to, by the id of the request that opened it. */
const SUBSCRIPTION_META = 'io.modelcontextprotocol/subscriptionId';
const MISSING_CAPABILITY = -32_021;
/** The id of our own first request; those of callers follow. */
const DISCOVER = 0;

/** The revision's HTTP statuses of errors; any other one comes in a 200. */
const STATUSES: Readonly<Record<number, number>> = {
  [METHOD_NOT_FOUND]: 404,
  [HEADER_MISMATCH]: 400,
  [MISSING_CAPABILITY]: 400,
  [UNSUPPORTED_REVISION]: 400,
};

/** Of callers, and meaningless to a process that knows their requests by other names. */
const BY_REQUEST: ReadonlySet<string | undefined> = new Set([
  'notifications/cancelled',
  'notifications/progress',
]);

/** A request that the server has not answered; the process knows it, and its progress, by the key. */
interface Running {
  readonly message: Message;
  readonly answer: PostedAnswer;
  readonly progressToken: unknown;
}

/**
 * One process for all callers of the stateless revision. It gets ids and progress tokens of ours in place of theirs, so that
 * no caller hears, or cancels, what belongs to another.
 */
export class SharedServer {
  readonly #process: ServerProcess;
  readonly #clock: Clock;
  readonly #onUse: () => void;
  readonly #running = new Map<number, Running>();
  #lastId: number = DISCOVER;
  #discovered: (message: StdioMessage) => void = () => {};

  /** @param onUse called when it begins or ceases to be in use */
  constructor(process: ServerProcess, clock: Clock, onUse: () => void) {
    this.#process = process;
    this.#clock = clock;
    this.#onUse = onUse;
  }

  /** Whether a request runs. */
  get isUsed(): boolean {
    return this.#running.size > 0;
  }

  /**
   * Asks the server what it is, as clients do before anything else: one of earlier revisions answers with an error.
   *
   * @returns whether it speaks the stateless revision; never, when it does not answer
   */
  discover(): Promise<boolean> {
    const _meta = {
      [REVISION_META]: STATELESS_SINCE,
      'io.modelcontextprotocol/clientInfo': { name: 'holdfast', version },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    return new Promise((resolve) => {
      this.#discovered = ({ result }) => {
        const versions = isObject(result) ? (result.supportedVersions ?? [STATELESS_SINCE]) : [];
        resolve(Array.isArray(versions) && versions.includes(STATELESS_SINCE));
      };
      this.#process.send({ jsonrpc: '2.0', id: DISCOVER, method: 'server/discover', params: { _meta } });
    });
  }

  /**
   * Sends a caller's message to the server. When nobody waits for its answer any more, the server is sent a cancellation.
   *
   * @returns the answer to a request when it begins; 202 otherwise
   * @throws ProcessLost the server has ended; Unavailable it reads nothing; the reason of the signal
   */
  async post(message: Message, signal: AbortSignal): Promise<Response> {
    if (message.kind !== 'request') {
      if (!BY_REQUEST.has(message.method)) this.#process.send(message.body);
      return new Response(null, { status: 202 });
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const onOver = (how: 'answered' | 'left') => {
      if (this.#running.delete(id) && how === 'left') this.#cancel(id);
      this.#onUse();
    };
    const answer = new PostedAnswer({ clock: this.#clock, signal, onOver });
    if (!answer.isOver) {
      const { body, progressToken } = withOwnIds(message.body, id);
      this.#running.set(id, { message, answer, progressToken });
      this.#onUse();
      try {
        this.#process.send(body);
      } catch (error) {
        answer.fail(error as Error);
      }
    }
    return answer.response;
  }

  /** Takes a message of the server to the caller that it belongs to; what belongs to nobody is dropped. */
  receive(message: StdioMessage): void {
    const { method, id } = message;
    if (typeof method !== 'string') {
      if (id === DISCOVER) this.#discovered(message);
      else this.#answer(message);
    } else if (id === undefined) {
      this.#notify(method, message);
    } else {
      // This revision has no requests of servers; one that waits for an answer must not wait for ever.
      const error = {
        code: METHOD_NOT_FOUND,
        message: 'Method not found: a server asks nothing in this revision',
      };
      this.#send({ jsonrpc: '2.0', id, error });
    }
  }

  /** Breaks off what runs. */
  close(reason: string): void {
    const lost = new ProcessLost(reason);
    for (const { answer } of [...this.#running.values()]) answer.fail(lost);
  }

  #notify(method: string, message: StdioMessage): void {
    const params = isObject(message.params) ? message.params : {};
    if (method === 'notifications/progress') {
      const running = this.#find(params.progressToken);
      if (running?.progressToken === undefined) return;
      running.answer.send({ ...message, params: { ...params, progressToken: running.progressToken } });
    } else if (method === 'notifications/cancelled') {
      const running = this.#find(params.requestId);
      running?.answer.send({ ...message, params: { ...params, requestId: running.message.id } });
      running?.answer.end();
    } else {
      const running = this.#find(isObject(params._meta) ? params._meta[SUBSCRIPTION_META] : undefined);
      running?.answer.send({ ...message, params: withSubscription(params, running) });
    }
  }

  #answer(given: StdioMessage): void {
    const running = this.#find(given.id);
    if (!running) return;
    const { error, result } = given;
    const own = { ...given, id: running.message.id };
    const status = isObject(error) ? STATUSES[Number(error.code)] : undefined;
    running.answer.answer(
      isObject(result) ? { ...own, result: withSubscription(result, running) } : own,
      status,
    );
  }

  /** By an id of ours: a number, or whatever the process makes of it. */
  #find(id: unknown): Running | undefined {
    return typeof id === 'number' ? this.#running.get(id) : undefined;
  }

  #cancel(requestId: number): void {
    const params = { requestId, reason: 'nobody waits for the answer any more' };
    this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
  }

  #send(message: StdioMessage): void {
    try {
      this.#process.send(message);
    } catch {
      // it has ended, or it does not read what it is sent
    }
  }
}

/** A request by our own id, which is its progress token as well. */
function withOwnIds(
  body: Message['body'],
  id: number,
): { readonly body: StdioMessage; readonly progressToken: unknown } {
  const params = isObject(body.params) ? body.params : {};
  const meta = isObject(params._meta) ? params._meta : {};
  const { progressToken } = meta;
  if (progressToken === undefined) return { body: { ...body, id }, progressToken };
  const own = { ...params, _meta: { ...meta, progressToken: id } };
  return { body: { ...body, id, params: own }, progressToken };
}

/** The subscription by the caller's own id. */
function withSubscription(
  given: Readonly<Record<string, unknown>>,
  { message }: Running,
): Readonly<Record<string, unknown>> {
  const meta = isObject(given._meta) ? given._meta : {};
  if (meta[SUBSCRIPTION_META] === undefined) return given;
  return { ...given, _meta: { ...meta, [SUBSCRIPTION_META]: message.id } };
}
