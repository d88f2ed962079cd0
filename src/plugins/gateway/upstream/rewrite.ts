import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { isObject } from '../../../core/json.ts';
import type { RequestId } from '../mcp/message.ts';

/** Changes one result on its way; everything else passes as it is. */
export type Rewrite = (result: unknown) => unknown;

/** @returns the message with its result rewritten, when it answers the request */
export function rewriteMessage(message: unknown, id: RequestId, rewrite: Rewrite): unknown {
  if (!isObject(message) || message.id !== id || !('result' in message)) return message;
  return { ...message, result: rewrite(message.result) };
}

/** What of an event stream is changed on its way. */
export interface EventChanges {
  /** Returns the same message to leave it as it was written. */
  readonly change: (message: unknown) => unknown;
  /** Changes the ids by which a client resumes a stream. */
  readonly rename?: (id: string) => string;
}

/** An event stream whose messages are looked at one by one. Feed it chunks; it returns what to send on, whole events. */
export function eventRewriter({ change, rename = (id) => id }: EventChanges): {
  feed(chunk: Buffer): string;
} {
  let out = '';
  const parser = createParser({
    onEvent({ id, event, data }) {
      out += written({ id: id === undefined ? id : rename(id), event, data: changed(data, change) });
    },
    onComment(comment) {
      out += `: ${comment}\n\n`;
    },
    onRetry(ms) {
      out += `retry: ${ms}\n\n`;
    },
  });
  const decoder = new TextDecoder();
  return {
    feed(chunk) {
      out = '';
      parser.feed(decoder.decode(chunk, { stream: true }));
      return out;
    },
  };
}

function changed(data: string, change: (message: unknown) => unknown): string {
  try {
    const message: unknown = JSON.parse(data);
    const next = change(message);
    return next === message ? data : JSON.stringify(next);
  } catch {
    return data;
  }
}

function written({ id, event, data }: EventSourceMessage): string {
  const lines = data.split('\n').map((line) => `data: ${line}\n`);
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`;
}
