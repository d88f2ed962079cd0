import { isObject } from '../../../core/kernel/json.ts';
import { parseExact } from '../mcp/message.ts';
import { EventBlocks, parseEvent } from './event-blocks.ts';

/** Changes one result on its way; returns the same one to leave it as it was written. */
export type Rewrite = (result: unknown) => unknown;

/**
 * Changes the result of an answer. Which request it answers does not matter: an upstream may write an id in another way
 * than the client did, and what a key may not see must not slip through.
 */
export function rewriteMessage(message: unknown, rewrite: Rewrite): unknown {
  if (Array.isArray(message)) return message.map((one) => rewriteMessage(one, rewrite));
  if (!isObject(message) || !('result' in message)) return message;
  const result = rewrite(message.result);
  return result === message.result ? message : { ...message, result };
}

/** What of an event stream is changed on its way. */
export interface EventChanges {
  /** Returns the same message to leave it as it was written. */
  readonly change: (message: unknown) => unknown;
  /** Changes the ids by which a client resumes a stream. */
  readonly rename?: (id: string) => string;
}

/**
 * An event stream whose messages are looked at one by one. Feed it chunks; it returns what to send on, whole events:
 * those that change, and the others byte for byte.
 */
export function eventRewriter({ change, rename }: EventChanges): { feed(chunk: Buffer): string } {
  const blocks = new EventBlocks();
  return {
    feed(chunk) {
      let out = '';
      for (const block of blocks.push(chunk)) {
        const event = parseEvent(block);
        const data = event.data ? changed(event.data, change) : undefined;
        out +=
          data === undefined && !rename
            ? block
            : event.write({ ...(data !== undefined && { data }), ...(rename && { rename }) });
      }
      return out;
    },
  };
}

/** @returns what a message becomes, or undefined when it stays as it is or is no JSON */
function changed(data: string, change: (message: unknown) => unknown): string | undefined {
  try {
    const message = parseExact(data);
    const next = change(message);
    return next === message ? undefined : JSON.stringify(next);
  } catch {
    return undefined;
  }
}
