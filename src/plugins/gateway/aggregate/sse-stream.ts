import type { ClientExchange } from '../calls/client-exchange.ts';
import { type Ending, stopWith } from '../stop.ts';
import { SELECTION_HEADER } from './selection.ts';

/** Bytes that a client may leave unread: its answers come by requests of its own, which no slow reading holds up. */
const MOST_UNREAD = 16 * 1024 * 1024;

/** The stream of one client of the old transport. */
export class SseStream {
  /** Id of the key's value that opened it. */
  readonly presented: string;
  /** Aborted when the client has left, or the gateway stops. */
  readonly over: Ending;
  readonly #exchange: ClientExchange;
  readonly #initialized = Promise.withResolvers<void>();
  /** The sealed session; undefined until the client has one. */
  session: string | undefined;

  constructor(exchange: ClientExchange, presented: string, draining: Ending) {
    this.#exchange = exchange;
    this.presented = presented;
    const over = stopWith(exchange.gone, draining);
    const end = () => exchange.end();
    draining.addEventListener('abort', end);
    exchange.onClose(() => {
      draining.removeEventListener('abort', end);
      over.release();
    });
    this.over = over;
  }

  get gone(): Ending {
    return this.#exchange.gone;
  }

  /** Of the GET; a POST that does not choose means the same servers. */
  get selection(): string | string[] | undefined {
    return this.#exchange.headers[SELECTION_HEADER];
  }

  initialize(): void {
    this.#initialized.resolve();
  }

  /** @returns the sealed session once the client has initialized; undefined when it leaves before */
  async initialized(stop: Ending): Promise<string | undefined> {
    const stopped = Promise.withResolvers<void>();
    const leave = () => stopped.resolve();
    stop.addEventListener('abort', leave);
    if (!stop.aborted) await Promise.race([this.#initialized.promise, stopped.promise]);
    stop.removeEventListener('abort', leave);
    return stop.aborted ? undefined : this.session;
  }

  write(events: Buffer | string): Promise<void> | undefined {
    const room = this.#exchange.write(events);
    if (this.#exchange.unread > MOST_UNREAD) this.#exchange.cut();
    return room;
  }
}
