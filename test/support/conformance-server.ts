import { setTimeout as after } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  type GetPromptResult,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Arguments = Readonly<Record<string, unknown>>;
type Tool = (given: Arguments, extra: Extra) => Promise<CallToolResult> | CallToolResult;

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] });
const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const;
const embedded = (uri: string, mimeType: string, content: string) =>
  ({ type: 'resource', resource: { uri, mimeType, text: content } }) as const;

async function elicit(message: string, properties: object, { sendRequest }: Extra): Promise<CallToolResult> {
  const params = { message, requestedSchema: { type: 'object', properties, required: [] } };
  const request = { method: 'elicitation/create', params } as unknown as ServerRequest;
  const { action, content } = await sendRequest(request, ElicitResultSchema);
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
}

const options = (names: readonly string[]) => names.map((name) => ({ const: name, title: `The ${name}` }));
const CHOICES = ['option1', 'option2', 'option3'];
const VALUES = ['value1', 'value2', 'value3'];

/** What the official suite wants of a server, by the names that it asks for. */
const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }),
  test_multiple_content_types: () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }),
  async test_tool_with_logging(_given, { sendNotification }) {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
      await after(20);
    }
    return text('Tool with logging executed successfully');
  },
  async test_tool_with_progress(_given, { sendNotification, _meta }) {
    const progressToken = _meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      });
      await after(20);
    }
    return text(String(progressToken));
  },
  test_error_handling: () => ({
    ...text('This tool intentionally returns an error for testing'),
    isError: true,
  }),
  async test_reconnection(_given, { closeSSEStream }) {
    closeSSEStream?.();
    await after(100);
    return text('Reconnection test completed successfully');
  },
  async test_sampling({ prompt }, { sendRequest }) {
    const content = { type: 'text', text: String(prompt) } as const;
    const params = { messages: [{ role: 'user', content }], maxTokens: 100 } as const;
    const request = { method: 'sampling/createMessage', params } as unknown as ServerRequest;
    const answer = await sendRequest(request, CreateMessageResultSchema);
    return text(`LLM response: ${answer.content.type === 'text' ? answer.content.text : ''}`);
  },
  test_elicitation: ({ message }, extra) =>
    elicit(String(message), { username: { type: 'string' }, email: { type: 'string' } }, extra),
  test_elicitation_sep1034_defaults: (_given, extra) =>
    elicit(
      'Defaults',
      {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      },
      extra,
    ),
  test_elicitation_sep1330_enums: (_given, extra) =>
    elicit(
      'Choices',
      {
        untitledSingle: { type: 'string', enum: CHOICES },
        titledSingle: { type: 'string', oneOf: options(VALUES) },
        legacyEnum: { type: 'string', enum: CHOICES, enumNames: CHOICES },
        untitledMulti: { type: 'array', items: { type: 'string', enum: CHOICES } },
        titledMulti: { type: 'array', items: { anyOf: options(VALUES) } },
      },
      extra,
    ),
  json_schema_2020_12_tool: () => text('ok'),
};

const SCHEMA_2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
  },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
};

type Prompt = (given: Readonly<Record<string, string>>) => GetPromptResult['messages'];
const said = (content: GetPromptResult['messages'][number]['content']) => ({
  role: 'user' as const,
  content,
});
const saidText = (value: string) => said({ type: 'text', text: value });

const PROMPTS: Readonly<Record<string, Prompt>> = {
  test_simple_prompt: () => [saidText('This is a simple prompt for testing.')],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [
    saidText(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
  ],
  test_prompt_with_embedded_resource: ({ resourceUri = '' }) => [
    said(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
    saidText('Please process the embedded resource above.'),
  ],
  test_prompt_with_image: () => [said(image), saidText('Please analyze the image above.')],
};

function read(uri: string) {
  const id = /^test:\/\/template\/(\w+)\/data$/.exec(uri)?.[1];
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG };
  if (id !== undefined) return { uri, mimeType: 'application/json', text: JSON.stringify({ id }) };
  return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' };
}

/** The server that the official conformance suite is written for, on the official SDK of the session revisions. */
export function conformanceServer(): Server {
  const server = new Server(
    { name: 'conformance', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
    },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      description: `The tool ${name}`,
      inputSchema: name.startsWith('json_schema') ? SCHEMA_2020 : { type: 'object' as const },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const tool = TOOLS[params.name];
    if (!tool) throw new RangeError(`no tool ${params.name}`);
    return tool(params.arguments ?? {}, extra);
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.keys(PROMPTS).map((name) => ({ name, description: `The prompt ${name}` })),
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => ({
    messages: PROMPTS[params.name]?.(params.arguments ?? {}) ?? [],
  }));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: ['static-text', 'static-binary', 'watched-resource'].map((name) => ({
      name,
      uri: `test://${name}`,
    })),
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ name: 'template', uriTemplate: 'test://template/{id}/data' }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [read(params.uri)] }));
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: [], hasMore: false } }));
  return server;
}
