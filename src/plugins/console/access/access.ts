import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { bearerOf, isSameSecret, isWrite } from '../../../core/host/http/admission.ts';
import { uidOf } from '../../../core/host/http/peer.ts';
import { peerOf, RequestBudget } from '../../../core/host/http/request-budget.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { AccessEvent } from '../../../machines/console/access.ts';
import { ConsoleError } from '../errors.ts';
import { CODE_MS, OneTimeCodes } from './one-time-codes.ts';
import { type Session, Sessions } from './sessions.ts';

/** Codes that one caller may try at once, and how many more each second allows. */
const ATTEMPTS = { burst: 10, perSecond: 1 / 30 };
/** One record a minute says that somebody tries codes. */
const RECORD_EVERY_MS = 60_000;

/** Who sent a request that may be answered. */
export interface Caller {
  readonly by: string;
  /** Absent of a caller with the token. */
  readonly session?: Session;
}

export interface AccessOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Makes a record of who was let in; resolves when it is durable. Where nothing writes the log, it does nothing. */
  readonly record: (event: AccessEvent, correlation?: string) => Promise<unknown>;
  /** After which a session ends, milliseconds. */
  readonly sessionMs: number;
  /** The token for programs and proxies, read at each request. */
  readonly token: () => string | undefined;
}

/** Decides who may look at the console: whoever has a cookie that a one-time code gave, or the token. */
export class Access {
  readonly #options: AccessOptions;
  readonly #codes = new OneTimeCodes();
  readonly #sessions: Sessions;
  readonly #attempts: RequestBudget;
  #recordedAt = Number.NEGATIVE_INFINITY;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options.sessionMs);
    this.#attempts = new RequestBudget({ size: ATTEMPTS, logger: options.logger, onRefused: () => {} });
  }

  /** @param by who asks for it, by the control socket @returns a code, and until when it is good (epoch milliseconds) */
  makeCode(by: string): { code: string; expiresAt: number } {
    const { clock } = this.#options;
    return { code: this.#codes.make(by, clock.monotonic()), expiresAt: clock.now() + CODE_MS };
  }

  /** @throws HF_HTTP_ORIGIN a page of another origin asks, or a write with the cookie has no origin */
  callerOf({ raw }: Pick<FastifyRequest, 'raw'>): Caller | undefined {
    refuseOtherSites(raw);
    const bearer = bearerOf(raw.headers);
    if (isSameSecret(bearer, this.#options.token())) return { by: 'token' };
    const session = this.#sessions.find(cookieOf(raw), this.#options.clock.monotonic());
    if (session && isWrite(raw.method)) requireOrigin(raw);
    return session && { by: session.by, session };
  }

  /**
   * @returns the session, and the value of the header `set-cookie`
   * @throws HF_CONSOLE_CODE, HF_CONSOLE_ATTEMPTS, HF_HTTP_ORIGIN
   */
  async login(
    { raw, id }: Pick<FastifyRequest, 'raw' | 'id'>,
    code: string,
  ): Promise<{ session: Session; cookie: string }> {
    refuseOtherSites(raw);
    requireOrigin(raw);
    const { clock, record } = this.#options;
    const from = peerOf(raw.socket.remoteAddress, await uidOf(raw.socket));
    const seconds = this.#attempts.spend(from);
    if (seconds !== undefined) {
      this.#recordRefusal(from);
      throw new ConsoleError('HF_CONSOLE_ATTEMPTS', { seconds });
    }
    const by = this.#codes.redeem(code, clock.monotonic());
    if (by === undefined) throw new ConsoleError('HF_CONSOLE_CODE', { minutes: CODE_MS / 60_000 });
    const { session, secret } = this.#sessions.begin(by, clock);
    const event = { type: 'LOGGED_IN', at: clock.now(), by, from, until: session.expiresAt } as const;
    await record(event, id);
    return { session, cookie: setCookie(raw, secret, Math.floor((session.expiresAt - clock.now()) / 1_000)) };
  }

  /** @returns the value of the header `set-cookie` that takes the cookie away */
  async logout({ raw, id }: Pick<FastifyRequest, 'raw' | 'id'>, { by }: Caller): Promise<string> {
    const secret = cookieOf(raw);
    if (secret !== undefined) this.#sessions.end(secret);
    const { clock, record } = this.#options;
    const event = { type: 'LOGGED_OUT', at: clock.now(), by } as const;
    await record(event, id);
    return setCookie(raw, '', 0);
  }

  /** Ends the sessions whose time is over. */
  sweep(): void {
    this.#sessions.sweep(this.#options.clock.monotonic());
  }

  #recordRefusal(from: string): void {
    const { clock, record } = this.#options;
    const now = clock.monotonic();
    if (now - this.#recordedAt < RECORD_EVERY_MS) return;
    this.#recordedAt = now;
    void record({ type: 'LOGIN_REFUSED', at: clock.now(), from });
  }
}

/** A page on another port of this machine is another origin, though its requests carry the cookie. */
function refuseOtherSites({ headers, url = '' }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  // A link of another page may lead here: what it opens is a page of ours, which nobody else can read or frame. A question
  // would be answered to nobody, and may cost the database seconds.
  const opensPage = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  if (opensPage && !/^\/+api(?:\/|$)/i.test(url)) return;
  throw new HostError('HF_HTTP_ORIGIN');
}

/** The surface has compared the origin with its own; browsers send one with every POST. */
function requireOrigin({ headers }: IncomingMessage): void {
  if (headers.origin === undefined) throw new HostError('HF_HTTP_ORIGIN');
}

// Browsers share cookies between the ports of a host: two instances on one machine must not share the name.
const nameOf = ({ socket }: IncomingMessage): string => `holdfast_${socket.localPort ?? 'socket'}`;

function cookieOf(raw: IncomingMessage): string | undefined {
  const names = new Set([nameOf(raw), `__Host-${nameOf(raw)}`]);
  for (const pair of (raw.headers.cookie ?? '').split(';')) {
    const [name = '', value] = pair.trim().split('=', 2);
    if (names.has(name) && value) return value;
  }
  return undefined;
}

function setCookie(raw: IncomingMessage, value: string, seconds: number): string {
  const isSecure = 'encrypted' in raw.socket || raw.headers.origin?.startsWith('https:') === true;
  const name = isSecure ? `__Host-${nameOf(raw)}` : nameOf(raw);
  return [
    `${name}=${value}`,
    'Path=/',
    `Max-Age=${seconds}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(isSecure ? ['Secure'] : []),
  ].join('; ');
}
