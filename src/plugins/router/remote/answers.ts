/** What a router's answers mean: our embedded router says it by a code, a real daemon by a text. */
import type {
  InterfaceView,
  NetworkConfig,
  ReapplyAnswer,
  SetAnswer,
} from '../../../core/contracts/router.ts';
import type { HttpAnswer } from '../../../core/host/http/client.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { isObject } from '../../../core/kernel/json.ts';

/** A router's error texts are shown to a person, and not parsed. */
const COMPLAINTS = 10;
const COMPLAINT_LENGTH = 300;

const NCID_MISMATCH = /ncid not match/i;
const TRANSACTION_PENDING = /transaction context is in progress/i;
const NO_TRANSACTION = /no ongoing config change transaction/i;
const OTHER_TRANSACTION = /does not match current transaction/i;
/** 4xx codes that mean "not now" and not "never". */
const NOT_NOW: readonly number[] = [408, 425, 429];

/**
 * What an answer to `POST /v1/config/set` means. A 200 without a new ncid, a 5xx and any answer of a proxy prove neither
 * that the config was applied nor that it was not.
 */
export function setAnswerOf(answer: HttpAnswer): SetAnswer {
  const { status } = answer;
  const body = answer.json();
  const { errors, ncid, code } = isObject(body) ? body : {};
  const complaints = textsOf(errors);
  if (status === 200) {
    if (typeof ncid === 'string' && ncid !== '' && complaints.length === 0) return { kind: 'applied', ncid };
    return unknown(complaints.join('; ') || 'it answered 200 without the new ncid');
  }
  if (status < 400 || status >= 500 || NOT_NOW.includes(status))
    return unknown([`it answered ${status}`, ...complaints].join(': '));
  // The embedded router answers with a code, a real daemon with a text.
  if (code === 'HF_ROUTER_NCID_MISMATCH' || complaints.some((text) => NCID_MISMATCH.test(text)))
    return { kind: 'conflict' };
  if (code === 'HF_ROUTER_TRANSACTION_PENDING' || complaints.some((text) => TRANSACTION_PENDING.test(text)))
    return { kind: 'pending' };
  return { kind: 'refused', errors: complaints.length > 0 ? complaints : [explained(status)] };
}

/** What an answer to `POST /v1/config/apply_current_config` means. A daemon's success names no ncid. */
export function reapplyAnswerOf(answer: HttpAnswer): ReapplyAnswer {
  const body = answer.json();
  if (answer.status === 200 && isObject(body) && textsOf(body.errors).length === 0)
    return { kind: 'applied' };
  const said = setAnswerOf(answer);
  if (said.kind === 'applied' || said.kind === 'conflict') return unknown('its answer is not understood');
  return said;
}

/**
 * Whether a transaction is pending, from the answer to a commit under a transID that nobody has used: a router refuses that
 * in either case, and says why.
 *
 * @returns undefined when the answer does not tell
 */
export function isTransactionPending(answer: HttpAnswer): boolean | undefined {
  const body = answer.json();
  if (answer.status < 400 || answer.status >= 500 || !isObject(body)) return undefined;
  const complaints = textsOf(body.errors);
  const says = (code: string, text: RegExp) =>
    body.code === code || complaints.some((complaint) => text.test(complaint));
  if (says('HF_ROUTER_TRANSACTION_NONE', NO_TRANSACTION)) return false;
  const isPending =
    says('HF_ROUTER_TRANSACTION_OTHER', OTHER_TRANSACTION) ||
    says('HF_ROUTER_TRANSACTION_PENDING', TRANSACTION_PENDING);
  return isPending || undefined;
}

/** The interface in an answer to `GET /v1/config/interfaces/<intf>`, or why there is none. */
export function interfaceOf(answer: HttpAnswer): InterfaceView | string {
  if (answer.status !== 200) return explained(answer.status);
  const body = answer.json();
  if (!isObject(body) || !isObject(body.config)) return 'it answered 200 with something that is no interface';
  const state = isObject(body.state) ? body.state : {};
  const { ip6 } = state;
  const addresses = Array.isArray(ip6) ? ip6.filter((address) => typeof address === 'string') : null;
  return { config: body.config, state: { ...state, ip6: addresses } };
}

/** The config in an answer to `GET /v1/config/active`, or why there is none. */
export function activeOf(answer: HttpAnswer): NetworkConfig | string {
  if (answer.status !== 200) return explained(answer.status);
  const body = answer.json();
  return isObject(body) ? body : 'it answered 200 with something that is no JSON object';
}

/** A description of an answer that has no text of its own. */
function explained(status: number): string {
  if (status >= 300 && status < 400)
    return `it answered ${status}, a redirect, which is never followed: name the router itself`;
  if (status === 401 || status === 403) return `it answered ${status}: it wants another token (tokenFile)`;
  if (status === 404) return 'it answered 404: there is no config API at this address';
  if (status === 413) return 'it answered 413: the config is larger than it takes';
  return `it answered ${status}`;
}

function textsOf(errors: unknown): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, COMPLAINTS).map((error) => maskText(String(error), COMPLAINT_LENGTH));
}

function unknown(reason: string): Extract<SetAnswer, { kind: 'unknown' }> {
  return { kind: 'unknown', reason };
}
