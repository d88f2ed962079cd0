import { createParser } from 'eventsource-parser';
import { isObject } from '../../../core/json.ts';
import type { CallEnded } from '../../../machines/mcp-access.ts';
import type { RequestId } from '../mcp/message.ts';
import type { ToolFacts } from '../telemetry/index.ts';

/** How a call ended as its answer tells, HTTP, JSON-RPC and tool errors told apart. */
export interface Told extends Pick<CallEnded, 'outcome' | 'code'> {
  /** What the result's `_meta.usage` reports, for telemetry. */
  readonly tokens?: ToolFacts['tokens'];
}

const OK: Told = { outcome: 'ok' };
/** Answers up to here are read whole; of larger ones only those that mention an error. */
const READ_WHOLE = 64 * 1024;
const LARGEST_READ = 8 * 1024 * 1024;

const TELLING = ['"isError"', '"error"', '"usage"'];

/** Looks at an answer as it passes, without holding it up. */
export interface Listener {
  push(chunk: Buffer): void;
  end(): Told;
}

/** @param id of the request that is answered */
export function listener(contentType: string, id: RequestId | undefined): Listener {
  if (id === undefined) return { push() {}, end: () => OK };
  return contentType.startsWith('text/event-stream') ? eventListener(id) : jsonListener();
}

export function toldBy(message: unknown): Told {
  if (!isObject(message)) return OK;
  if (isObject(message.error)) {
    const { code } = message.error;
    return { outcome: 'rpc_error', ...(typeof code === 'number' && { code }) };
  }
  const { result } = message;
  if (!isObject(result)) return OK;
  const tokens = tokensOf(result._meta);
  if (result.isError !== true && !tokens) return OK;
  return { outcome: result.isError === true ? 'tool_error' : 'ok', ...(tokens && { tokens }) };
}

function tokensOf(meta: unknown): Told['tokens'] {
  const usage = isObject(meta) && isObject(meta.usage) ? meta.usage : undefined;
  if (!usage) return undefined;
  const count = (value: unknown) => (typeof value === 'number' && value >= 0 ? value : undefined);
  return { input: count(usage.input_tokens), output: count(usage.output_tokens) };
}

function jsonListener(): Listener {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    push(chunk) {
      size += chunk.length;
      if (size <= LARGEST_READ) chunks.push(chunk);
    },
    end() {
      if (size > LARGEST_READ) return OK;
      const body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
      // A native search is some hundred times faster than parsing a megabyte that says nothing of errors.
      if (size > READ_WHOLE && !TELLING.some((name) => body.includes(name))) return OK;
      try {
        return toldBy(JSON.parse(body.toString('utf8')));
      } catch {
        return OK;
      }
    },
  };
}

function eventListener(id: RequestId): Listener {
  let told = OK;
  const parser = createParser({
    onEvent({ data }) {
      if (!data.includes('"result"') && !data.includes('"error"')) return;
      try {
        const message = JSON.parse(data);
        if (isObject(message) && message.id === id) told = toldBy(message);
      } catch {
        // what is no JSON is the client's to judge
      }
    },
  });
  const decoder = new TextDecoder();
  return {
    push(chunk) {
      parser.feed(decoder.decode(chunk, { stream: true }));
    },
    end: () => told,
  };
}
