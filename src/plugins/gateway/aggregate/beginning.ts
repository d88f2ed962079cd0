import { isObject } from '../../../core/kernel/json.ts';
import type { Message } from '../mcp/message.ts';
import { isKnown, isStateless, NEWEST_SESSIONED } from '../mcp/revisions.ts';
import type { Session } from '../session/sealed-sessions.ts';
import type { Ending } from '../stop.ts';
import type { Branch, ClientFacts } from './branch.ts';
import { serverInfo } from './legs.ts';
import type { Missing } from './lists.ts';
import { whyNot } from './unavailable.ts';

/** A client's facts are told again to every upstream that comes later, so they travel in the session's id. */
const LONGEST_FACTS = 2_048;
const LONGEST_INSTRUCTIONS = 8_192;

/** A session of the aggregate that begins. */
export interface Begun {
  readonly session: Session;
  readonly result: Readonly<Record<string, unknown>>;
  readonly missing: readonly Missing[];
}

/**
 * `initialize`: every upstream begins a session at once, and one that fails keeps nobody waiting beyond its deadline.
 */
export async function begin(branches: readonly Branch[], message: Message, stop: Ending): Promise<Begun> {
  const client = factsOf(message);
  const opened = await Promise.all(
    branches.map(async (branch) => {
      const server = branch.route.name;
      try {
        return { server, ...(await branch.open(client, stop)) };
      } catch (error) {
        return { server, reason: whyNot(error) };
      }
    }),
  );
  const there = opened.flatMap((one) => ('leg' in one ? [one] : []));
  const missing = opened.flatMap((one) => ('leg' in one ? [] : [one]));
  const others = there.filter(({ leg }) => leg.version !== client.version);
  const instructions = there
    .flatMap(({ server, result }) =>
      typeof result.instructions === 'string' ? [`# ${server}\n${result.instructions}`] : [],
    )
    .join('\n\n')
    .slice(0, LONGEST_INSTRUCTIONS);
  return {
    session: {
      upstream: Object.fromEntries(there.map(({ server, leg }) => [server, leg.id])),
      version: client.version,
      ...(others.length > 0 && {
        versions: Object.fromEntries(others.map(({ server, leg }) => [server, leg.version])),
      }),
      client: { capabilities: { ...client.capabilities }, clientInfo: { ...client.clientInfo } },
    },
    result: {
      protocolVersion: client.version,
      capabilities: capabilitiesOf(
        there.map(({ result }) => result.capabilities),
        missing.length > 0,
      ),
      serverInfo,
      ...(instructions !== '' && { instructions }),
    },
    missing,
  };
}

function factsOf({ body }: Message): ClientFacts {
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

/** What the aggregate can is what any of its upstreams can; who is away now may come later. */
function capabilitiesOf(all: readonly unknown[], someMissing: boolean): Readonly<Record<string, unknown>> {
  const merged: Record<string, Record<string, unknown>> = {
    tools: { listChanged: true },
    ...(someMissing && { prompts: {}, resources: {} }),
  };
  for (const capabilities of all.filter(isObject)) {
    for (const name of ['tools', 'prompts', 'resources', 'logging', 'completions']) {
      const one = capabilities[name];
      if (isObject(one)) merged[name] = { ...merged[name], ...trueOnes(one) };
    }
  }
  return merged;
}

const trueOnes = (flags: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(flags).filter(([, flag]) => flag === true));
