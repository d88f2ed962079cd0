import { isObject } from '../../../core/kernel/json.ts';
import { METHOD_NOT_FOUND } from '../mcp/codes.ts';
import type { Message } from '../mcp/message.ts';
import { shownName, showTools } from '../mcp/tool-names.ts';
import type { Ending } from '../stop.ts';
import type { Branch } from './branch.ts';
import { LARGEST } from './listen.ts';

/** Methods whose answers are merged, and under what name each has its items. */
const LISTS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
};
const MOST_PAGES = 100;

/** An upstream that took no part in an answer, and why. */
export interface Missing {
  readonly server: string;
  readonly reason: string;
}

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
  stop: Ending,
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
  stop: Ending,
): Promise<readonly unknown[] | Missing> {
  const inTime = branch.within(stop); // for all pages together
  return listWithin(branch, message, field, allowed, inTime.signal).finally(inTime.release);
}

async function listWithin(
  branch: Branch,
  message: Message,
  field: string,
  allowed: readonly string[] | undefined,
  inTime: Ending,
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
    const heard = await branch.request({ ...message, body: { ...message.body, params } }, inTime);
    if ('reason' in heard) return { server: route.name, reason: heard.reason };
    bytes += heard.bytes;
    if (bytes > LARGEST) return { server: route.name, reason: 'answers more than can be held' };
    const { result, error } = heard.message;
    if (isObject(error) && error.code === METHOD_NOT_FOUND) return [];
    if (!isObject(result)) return { server: route.name, reason: 'answers with an error' };
    const shown = field === 'tools' ? showTools(result, { route, allowed }) : result;
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
  return { ...prompt, name: shownName(route, prompt.name) };
}
