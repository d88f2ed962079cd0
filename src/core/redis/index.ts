/**
 * Redis as the router's documents use it: its URL, one connection with deadlines, and the diagnosis of a reader that
 * looks into the wrong database. Plugins that speak to a Redis import it; ioredis is loaded only when one does.
 */
export { askRedis, redisChecks, transactionCheck } from './checks.ts';
export { RedisClient, type RedisClientOptions, RedisFault, type RedisState } from './client.ts';
export {
  CONFIG_KEY,
  diagnoseRedis,
  HISTORY_DATABASE,
  HISTORY_KEY,
  type RedisDiagnosis,
} from './diagnose.ts';
export { CONFIG_DATABASE, maskRedisUrl, parseRedisUrl } from './url.ts';
