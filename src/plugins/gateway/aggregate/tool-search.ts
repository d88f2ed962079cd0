import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { isObject } from '../../../core/kernel/json.ts';
import { type Answer, INVALID_PARAMS, rpcError } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { type ToolDefinition, ToolIndex } from './tool-index.ts';

/** By which a client asks for two tools that find and call the others, in place of all definitions. */
export const TOOL_SEARCH_HEADER = 'x-mcp-tool-search';
/** The same in the query of the URL, for clients that can't set a header. */
export const TOOL_SEARCH_QUERY = 'tool_search';
/** How a search is called where calls are decided and recorded. */
const SEARCH_METHOD = 'tools/search';
const SEARCH_TOOL = 'search_tools';
const CALL_TOOL = 'call_tool';
const LONGEST_NAME = 256;
/** Definitions of one answer in JSON, characters; the best one is there in any case. */
const LARGEST_ANSWER: number = 256 * 1024;

const searchArguments = z.strictObject({
  query: z.string().trim().min(1).max(512),
  limit: z.int().min(1).max(50).default(10),
});

/** The definitions of the two tools. @param count of tools that the key may call @param servers of which they are */
function definitions(count: number, servers: readonly string[]): readonly object[] {
  return [
    {
      name: SEARCH_TOOL,
      title: 'Search tools',
      description: `Finds tools by what they do. There are ${count}, of these servers: ${servers.join(', ')}. Each that is found comes with its name, description and input schema. Call it by ${CALL_TOOL}.`,
      inputSchema: {
        type: 'object',
        properties: {
          query: {
            type: 'string',
            minLength: 1,
            maxLength: 512,
            description: 'A few words, e.g. "list open tickets"',
          },
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 50,
            default: 10,
            description: 'Most tools to return',
          },
        },
        required: ['query'],
        additionalProperties: false,
      },
      outputSchema: {
        type: 'object',
        properties: {
          tools: { type: 'array', items: { type: 'object' } },
          matches: { type: 'integer', description: 'How many tools match' },
        },
        required: ['tools', 'matches'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: CALL_TOOL,
      title: 'Call a tool',
      description: `Calls a tool that ${SEARCH_TOOL} found.`,
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'As it was found, e.g. tickets-list' },
          arguments: { type: 'object', description: 'As the input schema of that tool says' },
        },
        required: ['name'],
        additionalProperties: false,
      },
    },
  ];
}

/** A message as it is decided and carried out. */
export interface ReadTool {
  readonly message: Message;
  /** What is searched for, by a call of `search_tools`. */
  readonly search?: unknown;
}

/**
 * For a client that asks for it, `/mcp/` lists `search_tools` and `call_tool` in place of many tools. A call by `call_tool`
 * becomes the call of the tool that it names before anything is decided about it.
 */
export class ToolSearch {
  /** Lists of so many tools are shown whole. */
  readonly #above: number;
  readonly index: ToolIndex = new ToolIndex();

  /** @param above most tools of a list that is shown whole */
  constructor(above: number) {
    this.#above = above;
  }

  isAsked({ [TOOL_SEARCH_HEADER]: header }: IncomingHttpHeaders): boolean {
    return /^(?:1|on|true|yes)$/i.test(String(header ?? ''));
  }

  /** @returns the message that is meant, or the answer to one that means nothing */
  read(message: Message, headers: IncomingHttpHeaders): ReadTool | Answer {
    const { kind, method, name, id = null, body } = message;
    if (kind !== 'request' || method !== 'tools/call' || !this.isAsked(headers)) return { message };
    const params = isObject(body.params) ? body.params : {};
    const { arguments: given = {}, ...others } = params;
    if (name === SEARCH_TOOL) {
      const changed = { ...others, name: undefined };
      return {
        message: {
          ...message,
          method: SEARCH_METHOD,
          name: undefined,
          body: { ...body, method: SEARCH_METHOD, params: changed },
        },
        search: given,
      };
    }
    if (name !== CALL_TOOL) return { message };
    const called = isObject(given) ? given.name : undefined;
    if (!isObject(given) || typeof called !== 'string' || called.length > LONGEST_NAME)
      return rpcError(200, id, INVALID_PARAMS, `Invalid params: ${CALL_TOOL} wants the name of a tool`);
    if (given.arguments !== undefined && !isObject(given.arguments))
      return rpcError(
        200,
        id,
        INVALID_PARAMS,
        `Invalid params: the arguments of ${called.slice(0, 64)} are no object`,
      );
    const meant = {
      ...others,
      name: called,
      ...(given.arguments !== undefined && { arguments: given.arguments }),
    };
    return { message: { ...message, name: called, body: { ...body, params: meant } } };
  }

  /** @returns what a client is shown of a list of tools */
  shown(
    items: readonly unknown[],
    servers: readonly string[],
    headers: IncomingHttpHeaders,
  ): readonly unknown[] {
    return this.isAsked(headers) && items.length > this.#above ? definitions(items.length, servers) : items;
  }

  /** @param items what the key may call @param search arguments of the client @returns the result of the tool */
  async find(items: readonly unknown[], search: unknown): Promise<Readonly<Record<string, unknown>>> {
    const { data, error } = searchArguments.safeParse(search);
    if (!data) {
      const [issue] = error.issues;
      const field = issue?.path.join('.') || 'arguments';
      return failed(`${field}: ${issue?.message ?? 'not valid'}`);
    }
    const found = await this.index.find(items.filter(isTool), data.query);
    const tools: object[] = [];
    let size = 0;
    for (const { name, title, description, inputSchema, annotations } of found.slice(0, data.limit)) {
      const tool = { name, title, description, inputSchema, annotations };
      size += JSON.stringify(tool).length;
      if (size > LARGEST_ANSWER && tools.length > 0) break;
      tools.push(tool);
    }
    const structuredContent = { tools, matches: found.length };
    return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
  }
}

const isTool = (item: unknown): item is ToolDefinition => isObject(item) && typeof item.name === 'string';

const failed = (text: string) => ({ content: [{ type: 'text', text: `Error: ${text}` }], isError: true });

/** @returns the message by which the servers are asked for the tools that a search is made in */
export function listing(search: Message): Message {
  return { ...search, method: 'tools/list', body: { ...search.body, method: 'tools/list' } };
}
