import type { CallToolResult, McpServer, ToolAnnotations } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isCoded } from '../kernel/errors/holdfast-error.ts';

/** Characters of an answer: what is longer must be asked for in parts. */
const LONGEST_ANSWER = 200_000;
/** Longer than the systems behind the tools take to answer, milliseconds. */
const DEADLINE_MS = 30_000;

/** A tool of a server in this process. @public */
export interface ToolDefinition<S extends z.ZodObject> {
  readonly name: string;
  /** For the agent that chooses among tools: what it answers, and when to take it. */
  readonly description: string;
  readonly input: S;
  /** What the tool does to the world; that it only reads, unless set. */
  readonly annotations?: ToolAnnotations;
  /** @returns the answer, one JSON object */
  readonly answer: (given: z.output<S>, signal: AbortSignal) => Promise<object>;
}

/**
 * Adds a tool whose answer is data and text alike. What an adapter refuses with a code is the error of the tool, with its
 * remedy; so is an answer that is too long.
 *
 * @example addTool(server, { name: 'legs', description: 'Lists the networks.', input: z.object({}), answer: () => legs() })
 * @public
 */
export function addTool<S extends z.ZodObject>(
  server: McpServer,
  {
    name,
    description,
    input,
    annotations = { readOnlyHint: true, openWorldHint: false },
    answer,
  }: ToolDefinition<S>,
): void {
  const inputSchema: z.ZodObject = input;
  server.registerTool(
    name,
    { description, inputSchema, outputSchema: z.looseObject({}), annotations },
    (given, { mcpReq }) => {
      const signal = AbortSignal.any([mcpReq.signal, AbortSignal.timeout(DEADLINE_MS)]);
      return answered(() => answer(given as z.output<S>, signal), signal);
    },
  );
}

async function answered(answer: () => Promise<object>, signal: AbortSignal): Promise<CallToolResult> {
  try {
    const structuredContent: Record<string, unknown> = { ...(await answer()) };
    const text = JSON.stringify(structuredContent);
    if (text.length <= LONGEST_ANSWER) return { content: [{ type: 'text', text }], structuredContent };
    return failed(`The answer has ${text.length} characters, and ${LONGEST_ANSWER} at most: ask for a part.`);
  } catch (error) {
    if (isCoded(error)) return failed(`${error.code}: ${error.what} ${error.remedy}`);
    if (signal.aborted) return failed(`There is no answer after ${DEADLINE_MS / 1_000} s.`);
    throw error;
  }
}

const failed = (text: string): CallToolResult => ({ content: [{ type: 'text', text }], isError: true });
