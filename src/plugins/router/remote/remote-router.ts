import {
  type NetworkConfig,
  type RouterApi,
  type SetAnswer,
  withoutControlFields,
} from '../../../core/contracts/router.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { activeOf, setAnswerOf } from './answers.ts';
import { type Exchange, type HttpAnswer, NoAnswer } from './exchange.ts';

interface RemoteRouterParts {
  readonly exchange: Exchange;
  readonly readTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly isHeard?: () => boolean;
  /** Told of each call, and why it did not come to a usable answer. */
  readonly observe: (call: 'read' | 'write', fault: string | undefined) => void;
}

/** A read is repeated once when its connection broke: it may have been one that the router had just given up. */
const READ_TRIES = 2;

/**
 * The config API of a router elsewhere, over HTTP. It believes the router's own words
 * only; whatever else happens to a write makes it `unknown`, and whoever wrote reads again.
 */
export class RemoteRouter implements RouterApi {
  readonly #parts: RemoteRouterParts;

  constructor(parts: RemoteRouterParts) {
    this.#parts = parts;
  }

  isHeard(): boolean {
    return this.#parts.isHeard?.() ?? false;
  }

  async active(signal?: AbortSignal): Promise<NetworkConfig> {
    const config = activeOf(await this.#read(signal));
    this.#parts.observe('read', typeof config === 'string' ? config : undefined);
    if (typeof config === 'string') throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: config });
    return config;
  }

  async set(config: NetworkConfig, _correlation: string, signal?: AbortSignal): Promise<SetAnswer> {
    const body = withoutControlFields(config);
    // A body without ncid would overwrite whatever stands there.
    if (typeof body.ncid !== 'string' || body.ncid === '')
      return { kind: 'refused', errors: ['the config bears no ncid, so it was not posted'] };
    if (signal?.aborted) return { kind: 'unknown', reason: 'it was given up before it was posted' };
    const answer = await this.#write(JSON.stringify(body), signal);
    this.#parts.observe('write', answer.kind === 'unknown' ? answer.reason : undefined);
    return answer;
  }

  async #read(signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const { exchange, readTimeoutMs: timeoutMs, observe } = this.#parts;
    for (let tries = 1; ; tries += 1) {
      try {
        return await exchange.call({ method: 'GET', path: 'v1/config/active', timeoutMs, signal });
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (error.broke && tries < READ_TRIES) continue;
        observe('read', error.message);
        throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: error.message }, { cause: error });
      }
    }
  }

  async #write(body: string, signal: AbortSignal | undefined): Promise<SetAnswer> {
    const { exchange, writeTimeoutMs: timeoutMs } = this.#parts;
    try {
      return setAnswerOf(
        await exchange.call({ method: 'POST', path: 'v1/config/set', body, timeoutMs, signal }),
      );
    } catch (error) {
      if (error instanceof NoAnswer) return { kind: 'unknown', reason: error.message };
      // The token's file: nothing was sent.
      if (isCoded(error)) return { kind: 'refused', errors: [error.what] };
      throw error;
    }
  }
}
