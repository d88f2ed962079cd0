import { readFileSync } from 'node:fs';
import type {
  Heartbeat,
  PushAnswer,
  PushEvent,
  TokenAccess,
  UptimeMonitor,
} from '../../core/contracts/uptime.ts';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import type { Place } from '../../core/host/http/contract.ts';
import { withoutSecrets } from '../../core/host/logging/mask-secrets.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { parseAddress } from './options.ts';

export interface PushClientOptions {
  /** The monitor as it is now; undefined when there is none. */
  readonly place: () => Pick<Place, 'url' | 'tls'> | undefined;
  /** An IP address, with or without a port, to connect to in place of the URL's. */
  readonly connect?: string | undefined;
  readonly caFile?: string | undefined;
  /** Whether tokens may go to another machine in plaintext. */
  readonly insecure?: boolean | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** @throws HF_UPTIME_TOKEN */
  readonly token: (monitor: string) => Promise<string>;
  /** Whether that token can be read, and may be fetched. */
  readonly access?: (monitor: string) => Promise<TokenAccess>;
}

/** Characters of a message that are sent: monitors keep 250. */
const MSG_LIMIT = 250;

const HEADER_LIMIT = 500;
/** The exit status of wget for a file that it cannot read: there is no token. */
const NO_TOKEN = 3;
const DAY_MS = 86_400_000;

/** An answer with its headers. */
export interface PushExchange {
  readonly answer: PushAnswer;
  /** `name: value`, without the token. */
  readonly headers: readonly string[];
}

/** Pushes beats over HTTP: one connection a push, never a redirect, for the token is in the path (R27, O15). */
export class PushClient implements UptimeMonitor {
  readonly #options: PushClientOptions;

  constructor(options: PushClientOptions) {
    this.#options = options;
  }

  get place(): string {
    return this.#options.place()?.url ?? 'no uptime monitor';
  }

  /** @inheritDoc */
  async access(monitor: string): Promise<TokenAccess> {
    const { access } = this.#options;
    const found = 'this client reads no policy';
    return access?.(monitor) ?? { place: this.place, policy: { state: 'unknown', found } };
  }

  /** @inheritDoc */
  async push(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushAnswer> {
    return (await this.send(monitor, beat, signal)).answer;
  }

  /** @inheritDoc */
  async pushEvent(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushEvent> {
    const { clock } = this.#options;
    try {
      const answer = await this.push(monitor, beat, signal);
      return pushEventOf(answer, clock.now());
    } catch (error) {
      if (!isCoded(error)) throw error;
      const reason = error.what.replace(/\.$/, '');
      return { type: 'PUSH_FAILED', at: clock.now(), reason, exitStatus: NO_TOKEN };
    }
  }

  /** A push with the headers of its answer, to find out why pushes fail. @throws HF_UPTIME_TOKEN */
  async send(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushExchange> {
    const { place: placeOf, token: tokenOf, timeoutMs } = this.#options;
    const token = await tokenOf(monitor);
    const place = placeOf();
    if (place === undefined) {
      const reason = 'the embedded uptime monitor does not listen (yet)';
      return { answer: { kind: 'failed', reason, exitStatus: 4 }, headers: [] };
    }
    const http = this.#client(place);
    try {
      const answer = await http.call({
        url: `/api/push/${encodeURIComponent(token)}?${queryOf(beat)}`,
        headers: { accept: 'application/json', 'user-agent': 'holdfast' },
        secretIn: 'url',
        signal,
      });
      const headers = Object.entries(answer.headers).map(
        ([name, value]) => `${name}: ${withoutToken(String(value), token, HEADER_LIMIT)}`,
      );
      return { answer: interpret(answer, token), headers };
    } catch (error) {
      if (isCoded(error) && !(error instanceof HttpCallError)) throw error;
      return { answer: failure(error, timeoutMs), headers: [] };
    } finally {
      await http.close();
    }
  }

  /** A new one for each push: the authority's file may have changed. @throws HF_CONFIG_SECRET_MISSING */
  #client({ url: base, tls }: Pick<Place, 'url' | 'tls'>): HttpClient {
    const { connect, caFile, insecure, timeoutMs, clock } = this.#options;
    return new HttpClient({
      base,
      timeoutMs,
      connectTimeoutMs: timeoutMs,
      answerLimit: READ_LIMIT,
      excess: 'cut',
      keepAlive: false,
      insecure,
      pin: tls?.fingerprint,
      clock,
      ca: caFile === undefined ? undefined : authority(caFile),
      connectTo: connect === undefined ? undefined : parseAddress(connect),
    });
  }
}

function queryOf({ status, msg, ping, probe }: Heartbeat): string {
  const query = new URLSearchParams({ status, msg: msg.slice(0, MSG_LIMIT) });
  // Limited, so that a strict monitor does not refuse the beat: newer versions of Uptime Kuma accept a day at most.
  if (ping !== undefined) query.set('ping', String(Math.min(Math.max(0, Math.round(ping)), DAY_MS)));
  if (probe === true) query.set('probe', '1');
  return query.toString();
}

function authority(caFile: string): string {
  try {
    return readFileSync(caFile, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new KernelError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
  }
}

/** Bytes of an answer that are read. */
export const READ_LIMIT = 16_384;
/** Characters that are kept of the body of an answer, and of a reason. */
const KEPT = 2_048;
const REASON = 300;

/**
 * Interprets an answer. The body of an answer that does not confirm the beat is kept, because it is recorded nowhere
 * else (O15).
 *
 * @param token removed wherever the answer repeats it
 */
function interpret(answer: HttpAnswer, token: string): PushAnswer {
  const { status } = answer;
  const parsed = answer.json();
  const body = maskText(answer.textWithout(formsOf(token), TOKEN_MARK), KEPT);
  if (status >= 200 && status < 300 && isObject(parsed) && parsed.ok === true)
    return { kind: 'delivered', status, body };
  const msg =
    isObject(parsed) && typeof parsed.msg === 'string' ? withoutToken(parsed.msg, token, REASON) : undefined;
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

const TOKEN_MARK = '[token]';

/** The forms in which a server may repeat the token: as it is, and as the path has it. */
const formsOf = (token: string): string[] => [...new Set([token, encodeURIComponent(token)])];

/** A whole text without the token. @param limit characters */
function withoutToken(text: string, token: string, limit: number): string {
  return maskText(withoutSecrets(text, formsOf(token), TOKEN_MARK), limit);
}

/** Why no answer came, with the exit status that wget would have. */
function failure(error: unknown, timeoutMs: number): PushAnswer {
  const { code, message } = faultOf(error);
  if (TLS.test(code)) {
    return { kind: 'failed', reason: `TLS: ${withCode(TLS_WORDS[code] ?? message, code)}`, exitStatus: 5 };
  }
  const reason = NETWORK_WORDS[code] ?? message;
  const words = code === 'TIMEOUT' ? `no answer within ${timeoutMs / 1_000} s` : withCode(reason, code);
  return { kind: 'failed', reason: words, exitStatus: 4 };
}

/** The reasons of some failures end with their code already. */
const withCode = (reason: string, code: string): string =>
  reason.includes(`(${code})`) ? reason : `${reason} (${code})`;

const TLS = /^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/;

const TLS_WORDS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself; name its authority in caFile',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an unknown authority; name that authority in caFile',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'the certificate comes from an unknown authority; name that authority in caFile',
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
  EPIPE: 'the connection broke off',
  CONNECT_TIMEOUT: 'no connection in time',
};

function faultOf(error: unknown): { code: string; message: string } {
  if (error instanceof HttpCallError) return { code: error.networkCode, message: error.reason };
  if (!(error instanceof Error)) return { code: 'UNKNOWN', message: 'it failed' };
  return { code: error.name, message: maskText(error.message, REASON) };
}
