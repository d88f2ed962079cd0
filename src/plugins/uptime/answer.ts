import type { PushAnswer, PushEvent } from '../../core/contracts/uptime.ts';
import { HttpCallError } from '../../core/host/http/client.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import { isObject } from '../../core/kernel/json.ts';

/** How much of an answer is read, and how much of it is kept; characters. */
export const READ_LIMIT = 16_384;
const KEPT = 2_048;
const REASON = 300;

/**
 * What an answer means. Whatever is no delivery is kept as it came, for nobody else records why (O15).
 *
 * @param text the body, cut at READ_LIMIT
 * @param token taken out wherever it is repeated
 */
export function judge(status: number, text: string, token: string): PushAnswer {
  const said = parse(text);
  if (status >= 200 && status < 300 && isObject(said) && said.ok === true)
    return { kind: 'delivered', status };
  const body = scrub(text, token, KEPT);
  const msg = isObject(said) && typeof said.msg === 'string' ? scrub(said.msg, token, REASON) : undefined;
  return { kind: 'refused', status, ...(msg !== undefined && { msg }), body, exitStatus: 8 };
}

/** An answer as an event: `PUSHED`, `PUSH_REFUSED` with the body that nobody else records, or `PUSH_FAILED`. */
export function pushEventOf(answer: PushAnswer, at: number): PushEvent {
  if (answer.kind === 'delivered') return { type: 'PUSHED', at, status: answer.status };
  if (answer.kind === 'failed') {
    const { reason, exitStatus } = answer;
    return { type: 'PUSH_FAILED', at, reason, exitStatus };
  }
  const { status, msg, body, exitStatus } = answer;
  return { type: 'PUSH_REFUSED', at, status, ...(msg !== undefined && { msg }), body, exitStatus };
}

/** A text without the token, in whatever form it is repeated. */
export function scrub(text: string, token: string, limit: number): string {
  let clean = text;
  for (const form of new Set([token, encodeURIComponent(token)])) {
    clean = clean.replaceAll(form, '[token]');
  }
  // What was cut off may have cut a repeated token in two.
  if (text.length >= READ_LIMIT) clean = clean.slice(0, -Math.min(clean.length, token.length));
  return maskText(clean, limit);
}

/** Why no answer came, in words, and as wget would have exited. */
export function failure(error: unknown, timeoutMs: number): PushAnswer {
  const { code, message } = faultOf(error);
  if (TLS.test(code)) {
    return { kind: 'failed', reason: `TLS: ${TLS_WORDS[code] ?? message} (${code})`, exitStatus: 5 };
  }
  const reason = NETWORK_WORDS[code] ?? message;
  const words = code === 'TIMEOUT' ? `no answer within ${timeoutMs / 1_000} s` : `${reason} (${code})`;
  return { kind: 'failed', reason: words, exitStatus: 4 };
}

const TLS = /^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/;

const TLS_WORDS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself; name its authority in caFile',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an authority that is not known; name it in caFile',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'the certificate comes from an authority that is not known; name it in caFile',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
  EPROTO: 'the other side does not speak TLS',
};

const NETWORK_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'bad address: the name cannot be resolved',
  EAI_AGAIN: 'bad address: the name cannot be resolved now',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ECONNRESET: 'the connection broke off',
  UND_ERR_SOCKET: 'the connection broke off',
  EPIPE: 'the connection broke off',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
};

function faultOf(error: unknown): { code: string; message: string } {
  if (error instanceof HttpCallError) return { code: error.networkCode, message: error.reason };
  if (!(error instanceof Error)) return { code: 'UNKNOWN', message: 'it failed' };
  return { code: error.name, message: maskText(error.message, REASON) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
