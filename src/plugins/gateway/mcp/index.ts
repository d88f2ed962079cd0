/**
 * The protocol itself, without anybody's calls: `message.ts` reads what a client says and writes what an upstream hears,
 * `checks.ts` holds a request against the rules of its revision (`revisions.ts`), `tool-names.ts` puts a server's name in
 * front of its tools, `challenge.ts` reads an upstream's challenge, and `answers.ts` has every text that the gateway
 * answers by itself.
 */
export { type Answer, notFound, plainRefusal } from './answers.ts';
export type { Message } from './message.ts';
