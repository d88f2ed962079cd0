import { z } from 'zod';
import { parseRedisUrl } from '../../../core/host/redis/url.ts';

/** Where the config is kept in Redis; without `redisUrl` it is kept in the data folder. */
export const redisOptions = {
  /** A secret when it bears a password; then it belongs into the variable HOLDFAST_REDIS_URL. */
  redisUrl: z
    .string()
    .refine((url) => parseRedisUrl(url) !== undefined, 'redis://[user:password@]host[:port] is wanted')
    .optional(),
  /** What the names of the channels on Redis begin with; a real daemon's begin with `firerouter.`. */
  channelPrefix: z.string().min(1).max(64).default('router.'),
  /** Between two looks whether somebody else wrote the config in Redis. */
  storeCheckMs: z.int().min(10).default(5_000),
  /** Until a command to Redis without answer is given up. */
  redisTimeoutMs: z.int().min(50).default(5_000),
};
