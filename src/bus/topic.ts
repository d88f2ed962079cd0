import type { ZodType } from 'zod';

/**
 * A named, typed channel of the bus. Two topics of one name are one topic; the schema guards every message.
 *
 * @public
 */
export interface Topic<T = unknown> {
  /** Dotted and lower-case, e.g. `router.iface_change_applied`. */
  readonly name: string;
  readonly schema: ZodType<T>;
  /** One sentence for `holdfast graph` and the reference. */
  readonly summary: string;
}

/**
 * Declares a topic. What its messages carry is what the schema gives: no type is written beside it.
 *
 * @param name dotted lower-case name, unique in the process
 * @param schema guards every published payload; a payload that fails it is reported, never delivered
 * @param summary what a message means, in one sentence
 * @example
 * export const legLost = defineTopic('reconciler.leg_lost', z.object({ leg: z.string() }), 'A leg lacks its address.');
 * @public
 */
export function defineTopic<T>(name: string, schema: ZodType<T>, summary: string): Topic<T> {
  return Object.freeze({ name, schema, summary });
}
