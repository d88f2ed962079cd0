/**
 * The runtime: wires log, actors, bus, plugins and surfaces into one process, starts and stops them. Imported by
 * the command line and by programs that embed Holdfast; it knows plugins only by what they declare.
 */
export { createRuntime, Runtime, type RuntimeOptions } from './runtime.ts';
export { type RuntimeFile, readRuntimeFile } from './runtime-file.ts';
