import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { ApiDescription } from './model.ts';

/** How long a load of the routes waits for one document, milliseconds: less than a start may take. */
const WAIT_MS = 4_000;
/** Until a document that could not be read is read again, milliseconds. */
const AGAIN_MS = 30_000;
const BUSY = 'its OpenAPI document is being read';
const AWAY = 'its OpenAPI document can not be read at the moment';

interface ReadingOptions {
  readonly clock: Pick<Clock, 'after'>;
  /** @throws coded: the document can't be used */
  readonly read: () => Promise<ApiDescription>;
  /** Called with each failure after `begin`. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Reads a route's document, without holding the other routes up: what takes long, or lies at an address that does not
 * answer, goes on while the gateway serves.
 */
export class DocumentReading {
  /** Undefined until it is read. */
  api: ApiDescription | undefined;
  /** Why it is not, for clients; undefined when it is. */
  reason: string | undefined = BUSY;
  readonly #options: ReadingOptions;
  #cancel: () => void = () => {};
  #isOver = false;

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /** Reads for the first time. @throws coded: the document is refused, and that was seen within four seconds */
  async begin(): Promise<void> {
    const { clock } = this.#options;
    const waited = Promise.withResolvers<void>();
    const cancel = clock.after(WAIT_MS, waited.resolve);
    let isWaiting = true;
    const refused = this.#attempt().catch((error) => {
      if (isWaiting && !isCoded(error, 'HF_GATEWAY_OPENAPI_AWAY')) throw error;
      this.#failed(error);
    });
    try {
      await Promise.race([refused, waited.promise]);
    } finally {
      isWaiting = false;
      cancel();
    }
  }

  /** Ends the attempts. */
  close(): void {
    this.#isOver = true;
    this.#cancel();
  }

  async #attempt(): Promise<void> {
    this.api = await this.#options.read();
    this.reason = undefined;
  }

  #failed(error: unknown): void {
    if (this.#isOver) return;
    this.reason = AWAY;
    this.#options.onFailure(error);
    this.#cancel = this.#options.clock.after(AGAIN_MS, () => {
      this.#attempt().catch((again) => this.#failed(again));
    });
  }
}
