/**
 * What was answered and is not in the database yet: files of bounded size in `<data dir>/otlp-spool`, owned by one
 * worker thread, which also inflates and decodes bodies, so that neither a large body nor an fsync holds up the main
 * thread. `thread.ts` is the thread, `segments.ts` its files, `frames.ts` their format, `gather.ts` the group commit.
 *
 * Imports core and the decoders of this plugin.
 */
export type { Failure, Frame, FromThread, Taken, ThreadSettings, ToThread } from './protocol.ts';
