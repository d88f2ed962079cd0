import { isObject } from '../../../core/kernel/json.ts';
import { METHOD_NOT_FOUND } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import type { Session } from '../session/sealed-sessions.ts';

import { factsOf } from '../upstream/client-facts.ts';
import { LARGEST } from '../upstream/read-answer.ts';
import type { Branch } from './branch.ts';
import { serverInfo } from './sessions.ts';
import { type Missing, whyNot } from './unavailable.ts';

/** Methods whose answers are merged, and under what name each has its items. */
const LISTS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
};
const MOST_PAGES = 100;

export const listOf = (method: string | undefined): string | undefined =>
  method !== undefined && Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;

/**
 * One list of all upstreams, asked at once. Who fails is missing, and the others are there (G12).
 *
 * @param field name of the items
 * @param allowed shown names of tools; all when undefined
 */
export async function mergedList(
  branches: readonly Branch[],
  message: Message,
  field: string,
  allowed: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<{ readonly items: readonly unknown[]; readonly missing: readonly Missing[] }> {
  const parts = await Promise.all(branches.map((branch) => listFrom(branch, message, field, allowed, stop)));
  return {
    items: parts.flatMap((part) => (Array.isArray(part) ? part : [])),
    missing: parts.filter((part): part is Missing => !Array.isArray(part)),
  };
}

async function listFrom(
  branch: Branch,
  message: Message,
  field: string,
  allowed: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<readonly unknown[] | Missing> {
  const { route } = branch;
  const items: unknown[] = [];
  let cursor: unknown;
  let bytes = 0;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params = {
      ...(message.body.params as object | undefined),
      ...(cursor !== undefined && { cursor }),
    };
    const heard = await branch.request({ ...message, body: { ...message.body, params } }, stop);
    if ('reason' in heard) return { server: route.name, reason: heard.reason };
    bytes += heard.bytes;
    if (bytes > LARGEST) return { server: route.name, reason: 'answers more than can be held' };
    const { result, error } = heard.message;
    if (isObject(error) && error.code === METHOD_NOT_FOUND) return [];
    if (!isObject(result)) return { server: route.name, reason: 'answers with an error' };
    const shown = field === 'tools' ? route.tools.show(result, allowed) : result;
    const found = isObject(shown) ? shown[field] : undefined;
    for (const one of Array.isArray(found) ? found : []) {
      items.push(field === 'prompts' ? shownPrompt(branch, one) : one);
    }
    cursor = result.nextCursor;
    if (cursor === undefined || cursor === null) return items;
  }
  return { server: route.name, reason: 'answers with a list that does not end' };
}

function shownPrompt({ route }: Branch, prompt: unknown): unknown {
  if (!isObject(prompt) || typeof prompt.name !== 'string') return prompt;
  return { ...prompt, name: route.tools.prefixed(prompt.name) };
}

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
export async function begin(
  branches: readonly Branch[],
  message: Message,
  stop: AbortSignal,
): Promise<Begun> {
  const client = factsOf(message);
  const opened = await Promise.all(
    branches.map(async (branch) => {
      const server = branch.route.name;
      try {
        const begun = await branch.open(client, branch.within(stop));
        branch.ended('ok', message.method);
        return { server, ...begun };
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
