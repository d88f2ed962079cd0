/** The server of an OpenAPI route: each chosen operation of the document is a tool. */
import type {
  JsonSchemaValidator,
  jsonSchemaValidator,
  McpServerFactory,
} from '@modelcontextprotocol/server';
import { HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { ApiOperation, type ApiTarget } from './api-call.ts';
import { DocumentReading } from './document-reading.ts';
import type { ApiDescription, ApiTool, Method } from './model.ts';
import { DOCUMENT_LIMIT, FETCH_MS, findPinned, readDocument } from './source.ts';

/** How long the API may take to show that it is there, milliseconds. */
const REACH_MS = 5_000;

/** What a route's entry says of its API. */
export interface ApiOptions {
  readonly document: string;
  readonly digest: string;
  readonly baseUrl: string;
  readonly operations: readonly string[];
  readonly tags: readonly string[];
  readonly timeoutMs: number;
  readonly maxAnswer: number;
}

/** What of a route's entry its server needs. */
export interface ApiEntry {
  readonly name: string;
  readonly openapi: ApiOptions;
  readonly writes: boolean;
  readonly timeoutMs: number;
  readonly insecure?: boolean | undefined;
}

/** An API behind a route. */
export interface OpenedApi {
  /** Why it can't be called yet, for clients; undefined when it can. */
  readonly reason: string | undefined;
  /** Makes a server of the official SDK. */
  readonly factory: McpServerFactory;
  /** @returns why the API can't be reached; undefined when it answers, whatever it answers */
  reach(signal: AbortSignal): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Reads the document of an entry, and makes its server.
 *
 * @param credential of the route, read at each call
 * @throws HF_GATEWAY_OPENAPI, HF_GATEWAY_OPENAPI_CHANGED the document can't be used, or is another one than is pinned
 */
export async function openApi(
  { name, openapi, writes, timeoutMs: routeMs, insecure }: ApiEntry,
  credential: ApiTarget['credential'],
  { clock, logger }: Pick<Services, 'clock' | 'logger'>,
): Promise<OpenedApi> {
  const { document, digest, baseUrl, operations, tags, timeoutMs, maxAnswer } = openapi;
  const http = new HttpClient({
    base: baseUrl,
    timeoutMs: Math.min(timeoutMs, routeMs),
    answerLimit: maxAnswer,
    insecure,
  });
  const target: ApiTarget = { baseUrl, http, credential };
  let calls: readonly Callable[] = [];
  const read = async (): Promise<ApiDescription> => {
    const api = await readPinned(document, digest, { operations, tags, writes });
    if (api.leftOut.length > 0)
      logger.warn({ route: name, operations: api.leftOut }, 'gateway.openapi_left_out');
    calls = api.tools.map((tool) => ({ tool, operation: new ApiOperation(tool, target) }));
    return api;
  };
  const onFailure = (error: unknown): void =>
    logger.warn(
      { route: name, reason: isCoded(error) ? error.what : String(error) },
      'gateway.openapi_unread',
    );
  const reading = new DocumentReading({ clock, read, onFailure });
  await reading.begin();
  return {
    get reason() {
      return reading.reason;
    },
    factory: () => serverOf(reading.api, calls),
    reach: (signal) => reach(http, signal),
    close: () => {
      reading.close();
      return http.close();
    },
  };
}

async function readPinned(
  document: string,
  digest: string,
  selection: Parameters<typeof readDocument>[2],
): Promise<ApiDescription> {
  const source = new HttpClient({ timeoutMs: FETCH_MS, answerLimit: DOCUMENT_LIMIT });
  try {
    return await readDocument(document, await findPinned(document, digest, source), selection);
  } finally {
    await source.close();
  }
}

async function reach(http: HttpClient, signal: AbortSignal): Promise<string | undefined> {
  try {
    await http.call({ method: 'HEAD', url: '/', timeoutMs: REACH_MS, signal });
    return undefined;
  } catch (error) {
    if (error instanceof HttpCallError) return error.reason;
    throw error;
  }
}

interface Callable {
  readonly tool: ApiTool;
  readonly operation: ApiOperation;
}

async function serverOf(api: ApiDescription | undefined, calls: readonly Callable[]) {
  const { fromJsonSchema, McpServer } = await import('@modelcontextprotocol/server');
  // Arguments and answers are checked with the call, which says what is wrong with them.
  const unchecked: jsonSchemaValidator = {
    getValidator:
      <T>(): JsonSchemaValidator<T> =>
      (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
  };
  const server = new McpServer({ name: api?.title || 'api', version: api?.version || '0' });
  for (const { tool, operation } of calls) {
    const { name, title: shown, description, method, inputSchema, outputSchema } = tool;
    server.registerTool(
      name,
      {
        ...(shown !== undefined && { title: shown }),
        description,
        inputSchema: fromJsonSchema<unknown>(inputSchema, unchecked),
        ...(outputSchema && { outputSchema: fromJsonSchema<unknown>(outputSchema, unchecked) }),
        annotations: annotationsOf(method),
      },
      (given, { mcpReq }) => operation.call(given ?? {}, mcpReq.signal),
    );
  }
  return server;
}

/** What the definition of a method promises (RFC 9110, 9.2), and no more. */
function annotationsOf(method: Method) {
  const openWorldHint = true;
  switch (method) {
    case 'GET':
    case 'HEAD':
      return { readOnlyHint: true, openWorldHint };
    case 'PUT':
      return { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint };
    case 'DELETE':
      return { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint };
    case 'POST':
    case 'PATCH':
      return { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint };
  }
}
