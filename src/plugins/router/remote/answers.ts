import type { NetworkConfig, SetAnswer } from '../../../core/contracts/router.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { HttpAnswer } from './exchange.ts';

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
