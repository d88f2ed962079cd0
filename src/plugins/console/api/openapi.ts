import { z } from 'zod';
import { version } from '../../../core/kernel/version.ts';
import { ConsoleError } from '../errors.ts';
import type { Endpoint } from './endpoint.ts';

const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'action'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        action: { type: 'string', description: 'what to do about it' },
      },
    },
  },
};

const problems = Object.entries(ConsoleError.table)
  .map(([code, { status, what }]) => `- ${status} \`${code}\`: ${what}`)
  .join('\n');

/** The OpenAPI 3.1 document of the API, made from the schemas that check what comes and what goes. */
export function openApiOf(endpoints: readonly Endpoint[]): object {
  const paths: Record<string, Record<string, object>> = {};
  const schemas: Shared = {};
  for (const endpoint of endpoints) {
    const { method, path, summary, params, query, body, answer } = endpoint;
    const operation = {
      summary,
      parameters: [...parametersOf('path', params), ...parametersOf('query', query)],
      ...(body && {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: schemaOf(body, 'input', schemas) } },
        },
      }),
      responses: {
        200: {
          description: 'The answer',
          content: { 'application/json': { schema: schemaOf(answer, 'output', schemas) } },
        },
        default: { $ref: '#/components/responses/Error' },
      },
    };
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
  }
  paths['/api/events'] = { get: eventsOperation };
  return {
    openapi: '3.1.1',
    info: {
      title: 'The console of Holdfast',
      version,
      description: `Questions about one log, at any moment of it. Times are epoch milliseconds.\n\nErrors:\n\n${problems}`,
    },
    security: [{ cookie: [] }, { token: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        cookie: { type: 'apiKey', in: 'cookie', name: 'holdfast_<port>' },
        token: { type: 'http', scheme: 'bearer' },
      },
      responses: {
        Error: { description: 'What is wrong', content: { 'application/json': { schema: errorSchema } } },
      },
    },
  };
}

const eventsOperation = {
  summary: 'New records as server-sent events, from the last one that was seen',
  parameters: [
    { name: 'after', in: 'query', required: false, schema: { type: 'string', pattern: '^\\d{1,15}$' } },
    { name: 'last-event-id', in: 'header', required: false, schema: { type: 'string' } },
  ],
  responses: {
    200: {
      description: 'event: record (a row), or event: gap (the records that were left out)',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    default: { $ref: '#/components/responses/Error' },
  },
};

/** The schema, without what it defines for itself: that moves to the document's components. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', shared: Shared = {}): object {
  const { $schema: _, $defs = {}, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  const begin = Object.keys(shared).length;
  const names = new Map(Object.keys($defs).map((name, index) => [name, `Part${begin + index + 1}`]));
  const moved = (part: object): object =>
    JSON.parse(
      JSON.stringify(part).replaceAll(
        /"#\/\$defs\/([^"]+)"/g,
        (_text, name: string) => `"#/components/schemas/${names.get(name)}"`,
      ),
    );
  for (const [name, part] of Object.entries($defs)) shared[names.get(name) ?? name] = moved(part);
  return moved(rest);
}

/** Schemas by name. */
type Shared = Record<string, object>;

function parametersOf(place: 'path' | 'query', schema: z.ZodObject): object[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, object>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, of]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: of,
  }));
}
