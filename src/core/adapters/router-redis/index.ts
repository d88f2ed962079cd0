/**
 * The Redis of a router, its own or a daemon's: the places of config and history, and what `holdfast doctor` looks at
 * there. Imported by the plugins that speak to a router; how to talk to any Redis is `core/redis`.
 */
export { askRedis, redisChecks, transactionCheck } from './checks.ts';
export { diagnoseRedis, type RedisDiagnosis } from './diagnose.ts';
export { CONFIG_DATABASE, CONFIG_KEY, HISTORY_DATABASE, HISTORY_KEY } from './places.ts';
