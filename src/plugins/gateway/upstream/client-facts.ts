import { isObject } from '../../../core/kernel/json.ts';
import type { Message } from '../mcp/message.ts';
import { isKnown, isStateless, NEWEST_SESSIONED } from '../mcp/protocol.ts';

/** What a client said of itself when its session began. */
export interface ClientFacts {
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly clientInfo: Readonly<Record<string, unknown>>;
}

/** A client's facts are sent again with every session that begins later for it, so they travel in the session's id. */
const LONGEST_FACTS = 2_048;

/** @param message an `initialize` @returns what it says of its client, shortened where it is long */
export function factsOf({ body }: Message): ClientFacts {
  const { protocolVersion, capabilities, clientInfo } = (body.params ?? {}) as Record<string, unknown>;
  const asked = String(protocolVersion);
  const facts = {
    version: isKnown(asked) && !isStateless(asked) ? asked : NEWEST_SESSIONED,
    capabilities: isObject(capabilities) ? capabilities : {},
    clientInfo: isObject(clientInfo) ? clientInfo : {},
  };
  if (JSON.stringify(facts).length <= LONGEST_FACTS) return facts;
  const { name, version: its } = facts.clientInfo;
  const known = ['sampling', 'elicitation', 'roots'].filter((one) => one in facts.capabilities);
  return {
    ...facts,
    capabilities: Object.fromEntries(known.map((one) => [one, {}])),
    clientInfo: { name: shortened(name, 128), version: shortened(its, 64) },
  };
}

const shortened = (text: unknown, length: number): string =>
  typeof text === 'string' ? text.slice(0, length) : 'unknown';
