import type { IncomingHttpHeaders } from 'node:http';
import { createParser } from 'eventsource-parser';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';
import type { UpstreamAnswer } from '../fast-path/upstream-request.ts';
import type { RequestId } from '../mcp/json-rpc.ts';
import { parseExact } from '../mcp/message.ts';
import { whole } from './body.ts';
import { headerOf, isEvents } from './request.ts';

/** An answer that the gateway itself reads is held whole. */
export const LARGEST: number = 8 * 1024 * 1024;
/** What is parsed is written again, and a stack is not as deep as a text is long. */
const DEEPEST = 512;

/** What an upstream answered to a request of the gateway's own. */
export type Heard =
  | {
      readonly message: Readonly<Record<string, unknown>>;
      readonly headers: IncomingHttpHeaders;
      /** That were read for it. */
      readonly bytes: number;
    }
  /** Why there is no answer, in words that hold nothing of the upstream's own. */
  | { readonly reason: string };

/**
 * Reads the answer to one request, from JSON or from the first event that answers it.
 *
 * @param id undefined for a notification, which has none
 * @param watch looks at each part, and throws at one that must not be passed on
 * @throws RangeError it is larger or nested deeper than what can be held; whatever breaks its body off
 */
export async function hear(
  answer: UpstreamAnswer,
  id: RequestId | undefined,
  watch?: (part: Buffer) => void,
): Promise<Heard> {
  const { statusCode: status, headers, body } = answer;
  const type = headerOf(headers, 'content-type') ?? '';
  const isStream = isEvents(type);
  const isJson = /^application\/json\b/i.test(type);
  let bytes = 0;
  const counted = async function* () {
    for await (const chunk of body) {
      watch?.(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  try {
    if (status >= 300 && !(isJson && status !== 401 && status !== 403)) return { reason: reasonOf(status) };
    if (id === undefined)
      return status < 300 ? { message: {}, headers, bytes } : { reason: reasonOf(status) };
    if (!isStream && !isJson)
      return { reason: 'answers with something that is neither JSON nor an event stream' };
    const message = isStream
      ? await firstAnswer(counted(), id)
      : messageIn((await whole(counted(), LARGEST)).toString('utf8'));
    const answers = isObject(message) && ('result' in message || 'error' in message);
    if (answers) return { message, headers, bytes };
    return { reason: status < 300 ? 'breaks its answer off' : reasonOf(status) };
  } finally {
    body.destroy();
  }
}

function reasonOf(status: number): string {
  if (status === 401 || status === 403) return `refuses the credential (${status})`;
  return `answers with status ${status}`;
}

async function firstAnswer(chunks: AsyncIterable<Buffer>, id: RequestId): Promise<unknown> {
  let found: unknown;
  const parser = createParser({
    onEvent({ data }) {
      const message = messageIn(data);
      if (isObject(message) && message.id === id && message.method === undefined) found ??= message;
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > LARGEST) throw new RangeError('too large');
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A message that is there as a whole.
 *
 * @returns undefined when it is no JSON
 * @throws RangeError it is nested deeper than what can be held
 */
export function messageIn(text: string): unknown {
  if (nestsDeeper(text, DEEPEST)) throw new RangeError('too deep');
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}
