import { setImmediate } from 'node:timers/promises';
import type { StoredConfig } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { PendingReplies, Reply } from '../../../core/host/http/pending-replies.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { Blobs } from '../../../core/kernel/log/event-log.ts';
import type { Fence, SetEvent } from '../../../machines/router/config-shapes.ts';
import { changedPaths, withoutControlFields } from '../config/network-config.ts';
import { validateConfig } from '../config/validate.ts';
import { RouterError } from '../errors.ts';
import { applyRequested, setRequested } from './config-actor.ts';
import type { EmbeddedRouter } from './embedded-router.ts';
import { NcidTurns } from './ncid-turns.ts';
import type { RouterOptions } from './options.ts';
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
  const request = parseControlFields(body);
  if (request.config) validateConfig(request.config);
  return request;
}

/** The same without a look at the config, which takes the most time. @throws HF_ROUTER_REQUEST_INVALID */
function parseControlFields(body: unknown): ConfigRequest {
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
  return {
    ...transaction,
    ...(ncid !== undefined && { ncid }),
    ...(ignoreNcid === true && { ignoreNcid }),
    config: withoutControlFields(body),
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
  /** Of a writer that has to hold a lease. */
  readonly fence?: Fence | undefined;
}

/** A step over a config of a megabyte takes some 50 ms, one over a usual config less than one. */
const LONG_STEP_MS = 5;

/** Lets other work run after a long step, and costs short ones no turn of the event loop. */
class Pace {
  #began = performance.now();

  async step(): Promise<void> {
    if (performance.now() - this.#began > LONG_STEP_MS) await setImmediate();
    this.#began = performance.now();
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
  readonly #turns: NcidTurns;

  constructor(
    { bus, pendingReplies, logger }: Pick<Services, 'bus' | 'pendingReplies' | 'logger'>,
    router: EmbeddedRouter,
    configs: SealedConfigs,
    { replyTimeoutMs, queueLimit }: Pick<RouterOptions, 'replyTimeoutMs' | 'queueLimit'>,
  ) {
    this.#bus = bus;
    this.#logger = logger;
    this.#pendingReplies = pendingReplies;
    this.#router = router;
    this.#configs = configs;
    this.#replyTimeoutMs = replyTimeoutMs;
    this.#turns = new NcidTurns(queueLimit);
  }

  /**
   * `POST /v1/config/set`.
   *
   * @param body as parsed from JSON
   * @throws HF_ROUTER_REQUEST_INVALID, HF_ROUTER_CONFIG_INVALID nothing was published
   * @throws HF_LOG_WRITE the decision cannot be recorded now; HF_HTTP_TIMEOUT it was not made in time
   */
  async set(body: unknown, writer: Writer): Promise<Reply> {
    const { config, ...control } = this.#checked(writer, () => parseControlFields(body));
    // Opened here, so that waiting for a turn is part of the time, and ends with the answer.
    const reply = this.#pendingReplies.open(writer.request, this.#replyTimeoutMs);
    this.#publish(config, control, writer, reply).catch((error) =>
      this.#pendingReplies.fail(writer.request, error),
    );
    return reply;
  }

  async #publish(
    config: NetworkConfig | undefined,
    control: Omit<ConfigRequest, 'config'>,
    writer: Writer,
    reply: Promise<Reply>,
  ): Promise<void> {
    const { ncid, ignoreNcid } = control;
    if (!config) return this.#request({}, control, writer);
    if (ignoreNcid || ncid === undefined) return this.#write(config, control, writer);
    const winner = await this.#turns.take(ncid, reply);
    if (!this.#pendingReplies.has(writer.request)) return; // it gave up while it waited
    if (winner === undefined) return this.#write(config, control, writer);
    this.#request({ current: winner }, control, writer);
  }

  /** A request with a config that may be applied. */
  async #write(config: NetworkConfig, control: Omit<ConfigRequest, 'config'>, writer: Writer): Promise<void> {
    const pace = new Pace();
    // The store answers while the config is checked and sealed.
    const reading = this.#router.active();
    reading.catch(() => {});
    this.#checked(writer, () => validateConfig(config));
    await pace.step();
    const { fingerprint, blobs } = this.#configs.sealPosted(config);
    await pace.step();
    const { ncid: current, body } = await this.#reported(reading, writer);
    const { ncid = current, ignoreNcid, op } = control;
    if (ncid !== current && !ignoreNcid) return this.#request({ current }, control, writer);
    const before = this.#configs.parsed(body);
    const changed = changedPaths(before, config);
    // The config that a revert restores must be kept from here on, also if it was shredded meanwhile.
    const undo = op === 'append' ? this.#configs.seal(before).blobs : [];
    this.#request({ fingerprint, changed }, control, writer, new Map([...undo, ...blobs]));
  }

  #request(
    facts: Pick<SetEvent, 'current' | 'fingerprint' | 'changed'>,
    control: Omit<ConfigRequest, 'config'>,
    { request, who, correlation, cause, fence }: Writer,
    blobs?: Blobs,
  ): void {
    const { changed, ...others } = facts;
    const payload = {
      ...{ request, who, ...control, ...others },
      ...(changed && { changed: [...changed] }),
      ...(fence && { fence }),
    };
    this.#bus.publish(setRequested, payload, {
      correlation,
      ...(cause !== undefined && { cause }),
      ...(blobs && { blobs }),
    });
  }

  /** A request that is refused here reaches no machine and leaves no record, so a log line says who was refused and why. */
  #checked<T>({ correlation, who }: Writer, check: () => T): T {
    try {
      return check();
    } catch (error) {
      if (isCoded(error))
        this.#logger.warn({ correlation, who, code: error.code, reason: error.what }, 'router.post_refused');
      throw error;
    }
  }

  /** @throws HF_ROUTER_STORE_UNAVAILABLE which the log then records, because nothing else of the write will be in it */
  async #reported(
    reading: Promise<StoredConfig>,
    { who, correlation }: Pick<Writer, 'who' | 'correlation'>,
  ): Promise<StoredConfig> {
    try {
      return await reading;
    } catch (error) {
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE'))
        this.#bus.publish(writeMissed, { who }, { correlation });
      throw error;
    }
  }

  /** `POST /v1/config/apply_current_config`. @throws as `set` does */
  async applyCurrent(writer: Writer): Promise<Reply> {
    await this.#reported(this.#router.active(), writer); // a lost store is reported at once, before anything is begun
    // An answer that others share would be refused to them, or given to one that is to be refused.
    return writer.fence ? this.#applyOnce(writer, 1) : this.#reapplies.add(writer);
  }

  #applyOnce({ request, correlation, who, fence }: Writer, callers: number): Promise<Reply> {
    const reply = this.#pendingReplies.open(request, this.#replyTimeoutMs);
    const count = callers > 1 ? { callers } : {};
    this.#bus.publish(applyRequested, { request, who, ...count, ...(fence && { fence }) }, { correlation });
    return reply;
  }
}
