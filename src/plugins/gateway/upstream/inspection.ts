import { holdsSecret } from '../../../core/host/logging/mask-secrets.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { CallEnded } from '../../../machines/gateway/call-shapes.ts';
import { UpstreamFault } from '../fast-path/upstream-request.ts';
import type { Disposition } from '../routes/entry.ts';
import type { Route } from '../routes/route.ts';
import type { ToolFacts } from '../telemetry/call-facts.ts';
import { ByteBuffer } from './body.ts';
import { EventBlocks, parseEvent } from './events.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** How a call ended as its answer says: HTTP, JSON-RPC and tool errors are distinguished. */
export interface CallOutcome extends Pick<CallEnded, 'outcome' | 'code' | 'refusal'> {
  /** What the result's `_meta.usage` reports, for telemetry. */
  readonly tokens?: ToolFacts['tokens'];
}

const OK: CallOutcome = { outcome: 'ok' };
const LARGEST_READ = 8 * 1024 * 1024;
/**
 * The ends of `"isError"`, `"error"` and `"usage"`. A native search is some hundred times faster than parsing an answer
 * that says nothing of errors, and four times faster where it does not begin with the commonest character of JSON.
 */
const MARKERS = ['rror"', 'usage"'].map((name) => Buffer.from(name));

/** How a message says that the call ended. */
export function outcomeOf(message: unknown): CallOutcome {
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

function tokensOf(meta: unknown): CallOutcome['tokens'] {
  const usage = isObject(meta) && isObject(meta.usage) ? meta.usage : undefined;
  if (!usage) return undefined;
  // A sum that reaches infinity would stay there for ever.
  const count = (value: unknown) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  return { input: count(usage.input_tokens), output: count(usage.output_tokens) };
}

/** An answer in JSON: searched as it passes, and kept, because it can only be parsed when it is whole. */
export class JsonInspector {
  readonly #findsMarker = finder(MARKERS);
  #kept: ByteBuffer | undefined = new ByteBuffer();
  #hasMarker = false;
  /** Bytes so far. */
  size = 0;

  push(part: Buffer): void {
    this.size += part.length;
    if (this.size > LARGEST_READ) this.#kept = undefined; // it passes uninspected
    if (!this.#kept) return;
    this.#hasMarker ||= this.#findsMarker(part);
    this.#kept.push(part);
  }

  /** All of an answer of which no more than can be read has come; good until the next part. */
  bytes(): Buffer {
    return this.#kept?.bytes() ?? Buffer.alloc(0);
  }

  /** How the call ended. */
  outcome(): CallOutcome {
    return this.#kept && this.#hasMarker ? outcomeOfText(this.#kept.bytes()) : OK;
  }

  /** Gives its memory back: nobody reads or sends a part of it any more. */
  free(): void {
    this.#kept?.free();
  }
}

/** How an answer that is there as a whole says that the call ended. */
export function outcomeOfBody(body: Buffer): CallOutcome {
  return MARKERS.some((name) => body.includes(name)) ? outcomeOfText(body) : OK;
}

const outcomeOfText = (body: Buffer): CallOutcome => parsed(body.toString('utf8')) ?? OK;

/** An answer in events: of the messages on the stream of a request, the one without a method is its answer. */
export class EventInspector {
  readonly #blocks = new EventBlocks();
  #outcome = OK;
  #isOverflown = false;

  push(part: Buffer): void {
    if (this.#isOverflown) return;
    try {
      for (const block of this.#blocks.push(part)) {
        if (!block.includes('"result"') && !block.includes('"error"')) continue;
        this.#outcome = parsed(parseEvent(block).data ?? '') ?? this.#outcome;
      }
    } catch {
      this.#isOverflown = true; // an event larger than what may be held passes uninspected
    }
  }

  /** How the call ended. */
  outcome(): CallOutcome {
    return this.#outcome;
  }
}

function parsed(text: string): CallOutcome | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) && !('method' in message) ? outcomeOf(message) : undefined;
  } catch {
    return undefined; // what is no JSON is the client's to judge
  }
}

/** An upstream that repeats the gateway's own credential in its answer. */
export class CredentialRepeated extends UpstreamFault {}

const OWN_TOKEN: ReadonlySet<Disposition> = new Set(['overwrite', 'client_credentials', 'token_exchange']);

/**
 * Looks for the gateway's own token for a route in what comes back: whoever holds a key must not get to see it. One that an
 * upstream hides on purpose is not found.
 *
 * @returns a look at the next part of an answer, which throws CredentialRepeated; also when two parts hold a half each
 */
export function credentialWatch({ entry, credential }: Route): (part: Buffer) => void {
  const token = OWN_TOKEN.has(entry.disposition) ? credential(undefined).authorization : undefined;
  const secret = Buffer.from(token?.replace(/^Bearer /, '') ?? '');
  if (secret.length === 0) return () => undefined;
  const repeats = finder([secret]);
  return (part) => {
    if (repeats(part)) throw new CredentialRepeated();
  };
}

/** @returns whether an error holds the route's own credential, also wrapped or in pieces, as servers quote what they refuse */
export function quotesCredential({ credential }: Route, error: Buffer): boolean {
  const values = Object.values(credential(undefined)).map((value) => value.replace(/^Bearer /, ''));
  const secrets = values.filter((value) => value !== '');
  return secrets.length > 0 && holdsSecret(error.toString('utf8'), secrets);
}

/**
 * Looks for some byte strings in what comes in parts, by a native search, also where two parts hold a half each.
 *
 * @returns whether the next part, or the seam before it, holds one of them
 */
function finder(wanted: readonly Buffer[]): (part: Buffer) => boolean {
  const kept = Math.max(...wanted.map(({ length }) => length)) - 1;
  const holds = (bytes: Buffer) => wanted.some((one) => bytes.includes(one));
  let end: Buffer = Buffer.alloc(0);
  return (part) => {
    const found = holds(part) || (end.length > 0 && holds(Buffer.concat([end, part.subarray(0, kept)])));
    const last = part.length < kept ? Buffer.concat([end, part]) : part;
    end = last.subarray(Math.max(0, last.length - kept));
    return found;
  };
}

/** Tells telemetry of a tool's call that its upstream begins to answer. @param cost what is charged for it */
export function noteTool({ exchange, route, message }: UpstreamCall, cost = 0): void {
  if (message?.method !== 'tools/call') return;
  const tool = route.tools.upstreamName(message.name ?? '');
  if (tool === undefined) return;
  const { model = `${route.name}/${tool}`, tools } = route.entry;
  const undeclaredAt = route.entry.model === undefined && tools === undefined ? route.name : undefined;
  exchange.facts.tool = { name: tool, model, undeclaredAt, cost, responseMs: exchange.ms };
}

/** Tells telemetry of the tokens that the result reports. */
export function noteTokens({ exchange }: UpstreamCall, { tokens }: CallOutcome): void {
  const { facts } = exchange;
  if (tokens && facts.tool) facts.tool = { ...facts.tool, tokens };
}
