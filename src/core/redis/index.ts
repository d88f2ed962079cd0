/**
 * A Redis of whoever: its URL, and one connection with deadlines that comes and goes. What a router keeps in one is
 * `core/adapters/router-redis`. Plugins that speak to a Redis import it; ioredis is loaded only when one does.
 */
export { RedisClient, type RedisClientOptions, RedisFault, type RedisState } from './client.ts';
export { maskRedisUrl, parseRedisUrl } from './url.ts';
