import type { Redis } from 'ioredis';
import { maskText } from '../../core/logging/index.ts';

const CONNECT_MS = 10_000;
const LONGEST_PAUSE_MS = 5_000;

interface RedisOptions {
  /** How the connection is called in Redis's own `CLIENT LIST`. */
  readonly name: string;
  /** Goes on connecting for ever, with pauses up to 5 s; without it the first failure is final. */
  readonly retry: boolean;
  readonly db?: number;
}

/**
 * A connection that has not been made yet: call `connect()`. What is sent while there is none fails at once, and
 * nothing is repeated or subscribed behind our back. ioredis is loaded when first needed.
 */
export async function openRedis(url: string, { name, retry, db }: RedisOptions): Promise<Redis> {
  const { Redis } = await import('ioredis');
  return new Redis(url, {
    lazyConnect: true,
    connectionName: name,
    connectTimeout: CONNECT_MS,
    protocol: 2, // a router's Redis may be old, and pub/sub needs no more
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    retryStrategy: (times) => (retry ? Math.min(50 * 2 ** Math.min(times, 10), LONGEST_PAUSE_MS) : null),
    ...(db !== undefined && { db }),
  });
}

/** A failure of Redis in a few words, without the URL and its password. */
export function faultOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return faultOf(error.errors[0]);
  if (!(error instanceof Error)) return 'unknown';
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)';
  return maskText(error.message || (code ?? error.name), 200);
}
