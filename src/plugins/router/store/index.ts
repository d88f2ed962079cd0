/**
 * Where the config lives (`core/adapters/config-store.ts`): SQLite in the data folder, sealed, written by a worker thread
 * (`sqlite-config-store.ts`, `writer.ts`), or Redis at the documents' keys, each change one script
 * (`redis-config-store.ts`, `redis-scripts.ts`), with the connection's coming and going (`redis-backend.ts`). Commands read
 * either through `read-store.ts`, whether an instance runs or not.
 */
export { registerStoreConnection, writeMissed } from './connection.ts';
export { RedisBackend } from './redis-backend.ts';
export { redisOptions } from './redis-options.ts';
export { SqliteConfigStore } from './sqlite-config-store.ts';
