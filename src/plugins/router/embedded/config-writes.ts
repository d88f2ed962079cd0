import { setImmediate } from 'node:timers/promises';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { PendingReplies, Reply } from '../../../core/host/http/pending-replies.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { changedPaths, withoutControlFields } from '../config/network-config.ts';
import { validateConfig } from '../config/validate.ts';
import { RouterError } from '../errors.ts';
import { applyRequested, setRequested } from './config-actor.ts';
import type { EmbeddedRouter } from './embedded-router.ts';
import { ReapplyRequests } from './reapply-requests.ts';
import type { SealedConfigs } from './sealed-configs.ts';
import { writeMissed } from './store/connection.ts';

/** A posted body, parsed. */
export interface ConfigRequest {
  readonly op?: 'append' | 'commit' | 'revert';
  /** Set with `op`. */
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  /** The config as posted, without control fields; absent for commit and revert, which need none. */
  readonly config?: NetworkConfig;
}

const LONGEST_ID = 256;

/**
 * Parses the body of `POST /v1/config/set`: the config, and the control fields in it.
 *
 * @throws HF_ROUTER_REQUEST_INVALID the body or a control field has the wrong type
 * @throws HF_ROUTER_CONFIG_INVALID the config has a bad field
 */
export function parseRequest(body: unknown): ConfigRequest {
  if (!isObject(body)) return invalid('the body must be a JSON object');
  const { transactionOp, transID, ignoreNcid, ncid } = body;
  const op = operation(transactionOp);
  if (transID !== undefined && !isId(transID)) {
    return invalid(`transID must be a non-empty string of at most ${LONGEST_ID} characters`);
  }
  if (op && transID === undefined) return invalid('transactionOp needs a transID');
  const transaction = op && transID !== undefined ? { op, transID } : {};
  if (op === 'commit' || op === 'revert') return transaction;

  if (ncid !== undefined && !isId(ncid)) return invalid('ncid must be a string, the one that was read');
  if (ignoreNcid !== undefined && typeof ignoreNcid !== 'boolean') {
    return invalid('ignoreNcid must be true or false');
  }
  const config = withoutControlFields(body);
  validateConfig(config);
  return {
    ...transaction,
    ...(ncid !== undefined && { ncid }),
    ...(ignoreNcid === true && { ignoreNcid }),
    config,
  };
}

function operation(value: unknown): ConfigRequest['op'] {
  if (value === undefined || value === 'append' || value === 'commit' || value === 'revert') return value;
  return invalid('transactionOp must be append, commit or revert');
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_ID;
}

function invalid(reason: string): never {
  throw new RouterError('HF_ROUTER_REQUEST_INVALID', { reason });
}

/** Where a write comes from. */
export interface Writer {
  /** The id of the request that is answered; unique among the requests under way. */
  readonly request: string;
  /** Correlation id of the records; usually the request's own id. */
  readonly correlation: string;
  /** The number of the record that caused it, if there is one. */
  readonly cause?: number | undefined;
  /** For people. */
  readonly who: string;
}

/** A step over a config of a megabyte takes some 50 ms, one over a usual config less than one. */
const LONG_STEP_MS = 5;

/** Lets other work run after a long step, and costs short ones no turn of the event loop. */
class Pace {
  #began = performance.now();

  begin(): void {
    this.#began = performance.now();
  }

  async step(): Promise<void> {
    if (performance.now() - this.#began > LONG_STEP_MS) await setImmediate();
    this.begin();
  }
}

/** Handles every write, over HTTP or in process: parses it, seals it, publishes it, and waits for the machine's answer. */
export class ConfigWrites {
  readonly #bus: Services['bus'];
  readonly #logger: Pick<Services['logger'], 'warn'>;
  readonly #pendingReplies: PendingReplies;
  readonly #router: EmbeddedRouter;
  readonly #configs: SealedConfigs;
  readonly #replyTimeoutMs: number;
  readonly #reapplies = new ReapplyRequests((writer: Writer, callers) => this.#applyOnce(writer, callers));

  constructor(
    { bus, pendingReplies, logger }: Pick<Services, 'bus' | 'pendingReplies' | 'logger'>,
    router: EmbeddedRouter,
    configs: SealedConfigs,
    replyTimeoutMs: number,
  ) {
    this.#bus = bus;
    this.#logger = logger;
    this.#pendingReplies = pendingReplies;
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
    const pace = new Pace();
    const { config, ...control } = this.#parse(body, { correlation, who });
    await pace.step();
    // The store answers before the config is sealed: of writers that race, the first is then under way while the others
    // are still being sealed.
    const active = config && (await this.#activeFor(who, correlation));
    pace.begin();
    const sealed = config && this.#configs.seal(config);
    await pace.step();
    const before: NetworkConfig = active === undefined ? {} : JSON.parse(active);
    const changed = config && changedPaths(before, config);
    // The config that a revert restores must be kept from here on, also if it was shredded meanwhile.
    const undo = config && control.op === 'append' ? this.#configs.seal(before).blobs : [];
    const reply = this.#pendingReplies.open(request, this.#replyTimeoutMs);
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

  /** A request that is refused here reaches no machine and leaves no record, so a log line says who was refused and why. */
  #parse(body: unknown, writer: Pick<Writer, 'correlation' | 'who'>): ConfigRequest {
    try {
      return parseRequest(body);
    } catch (error) {
      if (isCoded(error))
        this.#logger.warn({ ...writer, code: error.code, reason: error.what }, 'router.post_refused');
      throw error;
    }
  }

  /** @throws HF_ROUTER_STORE_UNAVAILABLE which the log then records, because nothing else of the write will be in it */
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
  async applyCurrent(writer: Writer): Promise<Reply> {
    await this.#activeFor(writer.who, writer.correlation); // a lost store is reported at once, before anything is begun
    return this.#reapplies.add(writer);
  }

  #applyOnce({ request, correlation, who }: Writer, callers: number): Promise<Reply> {
    const reply = this.#pendingReplies.open(request, this.#replyTimeoutMs);
    const count = callers > 1 ? { callers } : {};
    this.#bus.publish(applyRequested, { request, who, ...count }, { correlation });
    return reply;
  }
}
