import type { NetworkConfig, RouterApi, SetAnswer } from '../../../core/contracts/router.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
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

/** A router's complaints are told to a person, not parsed. */
const COMPLAINTS = 10;
const COMPLAINT_LENGTH = 300;

const NCID_MISMATCH = /ncid not match/i;
const TRANSACTION_PENDING = /transaction context is in progress/i;
/** 4xx that say "not now" rather than "not this". */
const NOT_NOW: readonly number[] = [408, 425, 429];

/**
 * What an answer to `POST /v1/config/set` means. Only an answer in the
 * router's own words is believed; a 200 without a new ncid, a 5xx and whatever a proxy says prove neither that the
 * config was applied nor that it was not.
 */
export function setAnswerOf({ status, text }: HttpAnswer): SetAnswer {
  const body = parse(text);
  const { errors, ncid, code } = isObject(body) ? body : {};
  const complaints = textsOf(errors);
  if (status === 200) {
    if (typeof ncid === 'string' && ncid !== '' && complaints.length === 0) return { kind: 'applied', ncid };
    return unknown(complaints.join('; ') || 'it answered 200 without the new ncid');
  }
  if (status < 400 || status >= 500 || NOT_NOW.includes(status))
    return unknown([`it answered ${status}`, ...complaints].join(': '));
  // Ours says by code what the daemon says by text.
  if (code === 'HF_ROUTER_NCID_MISMATCH' || complaints.some((text) => NCID_MISMATCH.test(text)))
    return { kind: 'conflict' };
  if (code === 'HF_ROUTER_TRANSACTION_PENDING' || complaints.some((text) => TRANSACTION_PENDING.test(text)))
    return { kind: 'pending' };
  return { kind: 'refused', errors: complaints.length > 0 ? complaints : [explained(status)] };
}

/** The config in an answer to `GET /v1/config/active`, or why there is none. */
export function activeOf({ status, text }: HttpAnswer): NetworkConfig | string {
  if (status !== 200) return explained(status);
  const body = parse(text);
  return isObject(body) ? body : 'it answered 200 with something that is no JSON object';
}

/** An answer without words, in ours. */
function explained(status: number): string {
  if (status >= 300 && status < 400)
    return `it answered ${status}, a redirect, which is never followed: name the router itself`;
  if (status === 401 || status === 403) return `it answered ${status}: it wants another token (tokenFile)`;
  if (status === 404) return 'it answered 404: there is no config API at this address';
  if (status === 413) return 'it answered 413: the config is larger than it takes';
  return `it answered ${status}`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textsOf(errors: unknown): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, COMPLAINTS).map((error) => maskText(String(error), COMPLAINT_LENGTH));
}

function unknown(reason: string): SetAnswer {
  return { kind: 'unknown', reason };
}
