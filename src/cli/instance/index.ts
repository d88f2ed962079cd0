/**
 * What can be known of the instance on a data folder, running or not: asked of its health page, or read from the log
 * that it left. Used by `holdfast status`; starts nothing and changes nothing.
 */
export { instanceLines } from './lines.ts';
export { lookAt } from './look.ts';
export type { Instance } from './shapes.ts';
