/**
 * What was answered and is not in the database yet: files of bounded size in `<data dir>/otlp-spool`, owned by one
 * worker thread, which also inflates and decodes bodies and writes the text that is inserted, so that neither a large
 * body nor an fsync holds up the main thread. `spool.ts` is what the main thread has of it, `texts.ts` the rows that
 * came over; `thread.ts` is the thread, `segments.ts` its files (written and marked by `files.ts`),
 * `frames.ts` their format, `gather.ts` the group commit.
 *
 * Imports core and the decoders of this plugin.
 */
export type { Failure, Frame, FromThread, Taken } from './protocol.ts';
export { Spool } from './spool.ts';
