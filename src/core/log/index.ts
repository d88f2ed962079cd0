/**
 * The event log: ordered, append-only, hash-chained records in SQLite, written by a worker thread and readable by
 * anybody while it runs. Imported by the runtime, replay and commands; plugins see `EventLog` through their services.
 */
export type * from './event-log.ts';
export { lockDataDir, lockedBy, runtimeFile } from './lock.ts';
export {
  delayOf,
  type EffectRequest,
  INIT,
  type LogEvent,
  type LogRecord,
  logRecordSchema,
  type StateValue,
} from './record.ts';
export { SqliteLog, type SqliteLogOptions } from './sqlite-log.ts';
export { SqliteReader } from './sqlite-reader.ts';
