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

/** An event stream whose messages are looked at one by one. Feed it chunks; it returns what to send on. */
export function eventRewriter(id: RequestId, rewrite: Rewrite): { feed(chunk: Buffer): string } {
  let out = '';
  const parser = createParser({
    onEvent(event) {
      out += written({ ...event, data: rewriteData(event.data, id, rewrite) });
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

function rewriteData(data: string, id: RequestId, rewrite: Rewrite): string {
  try {
    const message: unknown = JSON.parse(data);
    const next = rewriteMessage(message, id, rewrite);
    return next === message ? data : JSON.stringify(next);
  } catch {
    return data;
  }
}

function written({ id, event, data }: EventSourceMessage): string {
  const lines = data.split('\n').map((line) => `data: ${line}\n`);
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`;
}
