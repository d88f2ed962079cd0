import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that wait behind another of their connection; clients of our time send none at all ahead. */
const MOST_PIPELINED = 128;

/** Which requests of a surface are being answered, and when the last of them is done. */
export class InFlight {
  readonly #responses = new Set<ServerResponse>();
  /** Those of a connection in the order in which they came, which is that of their answers. */
  readonly #lines = new WeakMap<Socket, ServerResponse[]>();
  readonly #draining = new AbortController();
  #allDone: (() => void) | undefined;

  /** Aborted once the surface takes no more requests. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  get count(): number {
    return this.#responses.size;
  }

  /** Counts a request until its answer is sent, or its client gone. @param then called at that moment */
  enter(response: ServerResponse, then: () => void): void {
    this.#responses.add(response);
    const line = this.#join(response);
    response.on('close', () => {
      then();
      if (line[0] === response) line.shift();
      else line.splice(line.indexOf(response), 1);
      this.#responses.delete(response);
      if (this.count === 0) this.#allDone?.();
    });
  }

  /** Lets it wait behind the others of its connection, but not behind any number of them, as Node would. */
  #join(response: ServerResponse): ServerResponse[] {
    const { socket } = response.req;
    let line = this.#lines.get(socket);
    if (!line) {
      line = [];
      this.#lines.set(socket, line);
    }
    line.push(response);
    if (line.length > 1 + MOST_PIPELINED) socket.destroy();
    return line;
  }

  /** @returns the answer that this connection waits for, or that is on its way */
  of(socket: Socket): ServerResponse | undefined {
    return this.#lines.get(socket)?.find((response) => response.socket === socket);
  }

  /**
   * Takes no more requests and waits for those that are being answered. Their connections end with the answer.
   *
   * @param deadlineMs longest wait
   * @returns how many were still open at the deadline
   */
  async drain(deadlineMs: number): Promise<number> {
    this.#draining.abort();
    for (const response of this.#responses) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
    if (this.count === 0) return 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#allDone = resolve;
    const timer = setTimeout(resolve, deadlineMs);
    await promise;
    clearTimeout(timer);
    return this.count;
  }
}
