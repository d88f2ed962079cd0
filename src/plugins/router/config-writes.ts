import { setImmediate } from 'node:timers/promises';
import type { Exchanges, Reply } from '../../core/host/http/exchanges.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { changedPaths } from './changed-paths.ts';
import type { EmbeddedRouter } from './embedded-router.ts';
import { type ConfigRequest, parseRequest } from './request.ts';
import type { SealedConfigs } from './sealed-configs.ts';
import { writeMissed } from './store/connection.ts';
import { applyRequested, setRequested } from './topics.ts';

/** Where a write comes from. */
export interface Writer {
  /** The id that the answer is addressed to; unique among the requests under way. */
  readonly request: string;
  /** The story the records join; mostly the request's own. */
  readonly correlation: string;
  /** The record that asked for it, when one did. */
  readonly cause?: number | undefined;
  /** For people. */
  readonly who: string;
}

/** The way of every write, over HTTP or in process: understood, sealed, published, decided, answered. */
export class ConfigWrites {
  readonly #bus: Services['bus'];
  readonly #logger: Pick<Services['logger'], 'warn'>;
  readonly #exchanges: Exchanges;
  readonly #router: EmbeddedRouter;
  readonly #configs: SealedConfigs;
  readonly #replyTimeoutMs: number;

  constructor(
    { bus, exchanges, logger }: Pick<Services, 'bus' | 'exchanges' | 'logger'>,
    router: EmbeddedRouter,
    configs: SealedConfigs,
    replyTimeoutMs: number,
  ) {
    this.#bus = bus;
    this.#logger = logger;
    this.#exchanges = exchanges;
    this.#router = router;
    this.#configs = configs;
    this.#replyTimeoutMs = replyTimeoutMs;
  }

  /**
   * `POST /v1/config/set`.
   *
   * @param body as parsed from JSON
   * @throws HF_ROUTER_REQUEST_INVALID, HF_ROUTER_CONFIG_INVALID nothing was published
   * @throws HF_LOG_WRITE the decision cannot be recorded now; HF_HTTP_TIMEOUT it was not made in time
   */
  async set(body: unknown, { request, correlation, cause, who }: Writer): Promise<Reply> {
    const { config, ...control } = this.#understood(body, { correlation, who });
    // Each step over a config of a megabyte takes some 50 ms: others have their turn in between.
    await setImmediate();
    const sealed = config && this.#configs.seal(config);
    await setImmediate();
    const before = config && JSON.parse(await this.#activeFor(who, correlation));
    const changed = config && changedPaths(before, config);
    // What a revert goes back to must be kept from here on, also where it was shredded meanwhile.
    const undo = config && control.op === 'append' ? this.#configs.seal(before).blobs : [];
    const reply = this.#exchanges.open(request, this.#replyTimeoutMs);
    const payload = {
      request,
      who,
      ...control,
      ...(sealed && { fingerprint: sealed.fingerprint }),
      ...(changed && { changed }),
    };
    this.#bus.publish(setRequested, payload, {
      correlation,
      ...(cause !== undefined && { cause }),
      ...(sealed && { blobs: new Map([...undo, ...sealed.blobs]) }),
    });
    return reply;
  }

  /** What is turned away here reaches no machine, and so no record: the log line says who was told what. */
  #understood(body: unknown, writer: Pick<Writer, 'correlation' | 'who'>): ConfigRequest {
    try {
      return parseRequest(body);
    } catch (error) {
      if (isCoded(error))
        this.#logger.warn({ ...writer, code: error.code, reason: error.what }, 'router.post_refused');
      throw error;
    }
  }

  /** @throws HF_ROUTER_STORE_UNAVAILABLE which the log then tells of, for nothing else of the write will be there */
  async #activeFor(who: string, correlation: string): Promise<string> {
    try {
      return (await this.#router.active()).body;
    } catch (error) {
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE'))
        this.#bus.publish(writeMissed, { who }, { correlation });
      throw error;
    }
  }

  /** `POST /v1/config/apply_current_config`. @throws as `set` does */
  async applyCurrent({ request, correlation, who }: Writer): Promise<Reply> {
    await this.#activeFor(who, correlation); // a store that is away is said at once, and nothing is set going
    const reply = this.#exchanges.open(request, this.#replyTimeoutMs);
    this.#bus.publish(applyRequested, { request, who }, { correlation });
    return reply;
  }
}
