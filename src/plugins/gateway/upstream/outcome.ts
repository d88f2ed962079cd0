import { isObject } from '../../../core/json.ts';
import type { CallEnded } from '../../../machines/mcp-access.ts';
import type { ToolFacts } from '../telemetry/index.ts';
import { Gathered } from './body.ts';
import { EventBlocks, parseEvent } from './event-blocks.ts';
import { finder } from './find.ts';

/** How a call ended as its answer tells, HTTP, JSON-RPC and tool errors told apart. */
export interface Told extends Pick<CallEnded, 'outcome' | 'code' | 'refusal'> {
  /** What the result's `_meta.usage` reports, for telemetry. */
  readonly tokens?: ToolFacts['tokens'];
}

const OK: Told = { outcome: 'ok' };
const LARGEST_READ = 8 * 1024 * 1024;
/**
 * The ends of `"isError"`, `"error"` and `"usage"`. A native search is some hundred times faster than parsing an answer
 * that says nothing of errors, and four times faster where it does not begin with the commonest character of JSON.
 */
const TELLING = ['rror"', 'usage"'].map((name) => Buffer.from(name));

/** Looks at an answer as it passes, without holding it up. */
export interface Listener {
  push(chunk: Buffer): void;
  end(): Told;
}

/** Hears the answer to one request. */
export function listener(isEvents: boolean): Listener {
  return isEvents ? eventListener() : jsonListener();
}

/** How a message says that the call ended. */
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
  const tells = finder(TELLING);
  let gathered: Gathered | undefined = new Gathered();
  let telling = false;
  return {
    push(chunk) {
      if (!gathered) return;
      telling ||= tells(chunk);
      if (gathered.size + chunk.length <= LARGEST_READ) gathered.push(chunk);
      else gathered = undefined;
    },
    end: () => (gathered && telling ? toldByText(gathered.bytes()) : OK),
  };
}

/** How an answer that is there as a whole says that the call ended. */
export function toldByWhole(body: Buffer): Told {
  return TELLING.some((name) => body.includes(name)) ? toldByText(body) : OK;
}

const toldByText = (body: Buffer): Told => parsed(body.toString('utf8')) ?? OK;

/** Of the messages on the stream of a request, the one without a method is its answer. */
function eventListener(): Listener {
  const blocks = new EventBlocks();
  let told = OK;
  let deaf = false;
  return {
    push(chunk) {
      if (deaf) return;
      try {
        for (const block of blocks.push(chunk)) {
          if (!block.includes('"result"') && !block.includes('"error"')) continue;
          told = parsed(parseEvent(block).data ?? '') ?? told;
        }
      } catch {
        deaf = true; // an event larger than what may be held passes unheard
      }
    },
    end: () => told,
  };
}

function parsed(text: string): Told | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) && !('method' in message) ? toldBy(message) : undefined;
  } catch {
    return undefined; // what is no JSON is the client's to judge
  }
}
