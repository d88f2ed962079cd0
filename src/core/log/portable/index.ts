/**
 * The portable form of a log (C6): JSON Lines that are written from a data folder, carried anywhere, and read in its
 * place. A header says what is in it; the states of actors follow where it does not begin at the first record; then
 * the records, each with its hash; then an end, so that a file that was cut off is found. It holds no sealed bodies.
 *
 * Knows the log alone; used by commands and replay.
 */
export { type ExportPart, portableHeader, portableLines } from './export.ts';
export { writePortable } from './file.ts';
export type { PortableHeader } from './format.ts';
export { importLog } from './import.ts';
export { openReader } from './open-reader.ts';
