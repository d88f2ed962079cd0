import type { Redis } from 'ioredis';
import { HostError } from '../errors/host-error.ts';
import { parseRedisUrl, type RedisAddress } from './url.ts';

export interface RedisClientOptions {
  /** `redis://…`; its user and password are in no text of this module. */
  readonly url: string;
  /** Shown by `CLIENT LIST`. */
  readonly name: string;
  /** Until a command without answer is given up, milliseconds. */
  readonly commandTimeoutMs?: number;
}

/**
 * Why a command brought no result.
 *
 * - `unavailable`: there is no connection; the command was not sent.
 * - `refused`: Redis answered with an error.
 * - `unanswered`: it was sent, and may or may not have been carried out.
 */
export type RedisFaultKind = 'unavailable' | 'refused' | 'unanswered';

/** Errors of ioredis carry the arguments of their command, which may be a whole config: only their text goes on. */
export class RedisFault extends Error {
  readonly kind: RedisFaultKind;

  constructor(kind: RedisFaultKind, reason: string) {
    super(reason);
    this.name = 'RedisFault';
    this.kind = kind;
  }
}

export interface RedisState {
  readonly connected: boolean;
  /** Why not: the newest failure. */
  readonly reason?: string;
}

const COMMAND_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * A peer that disappears without closing the connection is noticed because it does not answer. Longer than the deadline
 * of commands: see `run`.
 */
const SILENCE_MS = 60_000;
const BACKOFF_MS = { first: 50, most: 3_000 };

/**
 * One connection to a Redis that comes and goes: it connects again by itself, with growing pauses, keeps no queue
 * while it is away, and gives every command a deadline. ioredis is loaded when the first one is opened.
 */
export class RedisClient {
  /** The URL without its secrets. */
  readonly shown: string;
  readonly #redis: Redis;
  readonly #readyListeners = new Set<() => void>();
  readonly #lostListeners = new Set<(reason: string) => void>();
  #reason = 'it has not answered yet';
  #connected = false;
  #closed = false;

  private constructor(redis: Redis, { shown }: RedisAddress) {
    this.#redis = redis;
    this.shown = shown;
    // An error event without a listener would be printed, and by ioredis itself.
    redis.on('error', (error: Error) => {
      this.#reason = textOf(error);
    });
    redis.on('ready', () => {
      this.#connected = true;
      for (const listener of this.#readyListeners) listener();
    });
    redis.on('close', () => {
      if (!this.#connected) return;
      this.#connected = false;
      this.#reason = 'the connection was lost';
      if (!this.#closed) for (const listener of this.#lostListeners) listener(this.#reason);
    });
  }

  /**
   * Begins to connect and does not wait for it.
   *
   * @throws HF_REDIS_URL it is not the URL of a Redis
   */
  static async open({ url, name, commandTimeoutMs = COMMAND_TIMEOUT_MS }: RedisClientOptions) {
    const address = parseRedisUrl(url);
    if (!address) throw new HostError('HF_REDIS_URL');
    const { Redis } = await import('ioredis');
    const { path, host, port, username, password, tls } = address;
    const redis = new Redis({
      ...(path !== undefined ? { path } : { host: host ?? 'localhost', port: port ?? 6379 }),
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls && { tls: { servername: host ?? '' } }),
      protocol: 2, // small machines run Redis releases from before the third version
      connectionName: name,
      disableClientInfo: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: commandTimeoutMs,
      socketTimeout: SILENCE_MS,
      keepAlive: 10_000,
      enableOfflineQueue: false,
      // What is under way when the connection breaks fails at once instead of being sent a second time.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (times) => Math.min(BACKOFF_MS.first * 2 ** Math.min(times, 10), BACKOFF_MS.most),
    });
    return new RedisClient(redis, address);
  }

  state(): RedisState {
    return this.#connected ? { connected: true } : { connected: false, reason: this.#reason };
  }

  /** Calls back at each (re)connect. */
  onReady(listener: () => void): void {
    this.#readyListeners.add(listener);
  }

  /** Calls back when an established connection is lost. */
  onLost(listener: (reason: string) => void): void {
    this.#lostListeners.add(listener);
  }

  /** @returns whether there is a connection, after waiting for one at most this long */
  async ready(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#connected) return true;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#readyListeners.delete(done);
        signal?.removeEventListener('abort', done);
        resolve(this.#connected);
      };
      const timer = setTimeout(done, timeoutMs);
      this.#readyListeners.add(done);
      signal?.addEventListener('abort', done, { once: true });
    });
  }

  /**
   * Carries out one command. A command that timed out stays on its connection, so that the next command is answered
   * after it and shows its result.
   *
   * @throws RedisFault, and nothing else
   */
  async run<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
    if (!this.#connected || this.#closed) {
      throw new RedisFault('unavailable', this.#closed ? 'it is closed' : this.#reason);
    }
    try {
      return await command(this.#redis);
    } catch (error) {
      if (isReply(error)) throw new RedisFault('refused', textOf(error));
      throw new RedisFault('unanswered', this.#connected ? textOf(error) : this.#reason);
    }
  }

  close(): void {
    this.#closed = true;
    this.#connected = false;
    this.#redis.disconnect();
  }
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

function textOf(error: unknown): string {
  const { message = '', errors } = error as { message?: string; errors?: readonly Error[] };
  // A host with two addresses fails with a list, and with no text of its own.
  return message || errors?.[0]?.message || 'no reason was given';
}
