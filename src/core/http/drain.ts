import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Slab } from '../slab.ts';

/** Requests that wait behind another of their connection; clients of our time send none at all ahead. */
const MOST_PIPELINED = 128;

/** Which requests of a surface are being answered, and when the last of them is done. */
export class InFlight {
  readonly #responses = new Slab<ServerResponse>();
  /** How many wait of a connection. */
  readonly #pipelined = new WeakMap<Socket, number>();
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
    const { socket } = response;
    const place = this.#responses.add(response);
    const line = socket ? undefined : this.#pipeline(response.req.socket);
    response.on('close', () => {
      then();
      if (line) this.#pipelined.set(line, (this.#pipelined.get(line) ?? 1) - 1);
      this.#responses.remove(place, response);
      if (this.count === 0) this.#allDone?.();
    });
  }

  /** Counts a request that waits behind another of its connection: Node would take any number of them. */
  #pipeline(socket: Socket): Socket {
    const waiting = (this.#pipelined.get(socket) ?? 0) + 1;
    this.#pipelined.set(socket, waiting);
    if (waiting > MOST_PIPELINED) socket.destroy();
    return socket;
  }

  /** @returns the answer that this connection waits for, or that is on its way */
  of(socket: Socket): ServerResponse | undefined {
    for (const response of this.#responses) if (response.socket === socket) return response;
    return undefined;
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
