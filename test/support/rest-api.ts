import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';

/** A request as the API got it. */
export interface Received {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface RestApi {
  readonly url: string;
  /** All but the look whether the API is there. */
  readonly received: Received[];
  /** Ends it, with its connections. */
  stop(): Promise<void>;
}

const JSON_TYPE = { 'content-type': 'application/json' };
type Answer = (request: Received, response: ServerResponse) => void;

const json =
  (status: number, value: unknown): Answer =>
  (_request, response) =>
    void response.writeHead(status, JSON_TYPE).end(JSON.stringify(value));
const raw =
  (status: number, type: string, body: string | Buffer): Answer =>
  (_request, response) =>
    void response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);

/** What the API does wrong, by the `how` of `/misbehave/{how}`. */
const MISBEHAVIOURS: Readonly<Record<string, Answer>> = {
  missing: json(404, { error: 'there is no such ticket' }),
  broken: raw(500, 'text/plain', 'the database is away'),
  long: raw(500, 'text/plain', 'long '.repeat(20_000)),
  picture_error: raw(503, 'image/png', Buffer.from([1, 2, 3])),
  redirect: (_request, response) => void response.writeHead(302, { location: '/tickets/stolen' }).end(),
  no_json: raw(200, 'application/json', '{"id": '),
  deep: raw(200, 'application/json', '['.repeat(5_000) + ']'.repeat(5_000)),
  picture: raw(200, 'image/png', Buffer.from([1, 2, 3])),
  packed: (_request, response) =>
    void response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(Buffer.from([31, 139])),
  large: json(200, { text: 'x'.repeat(100_000) }),
  hang: () => {},
  cut: (_request, response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' });
    response.write('{"id"', () => response.destroy());
  },
  text: raw(200, 'text/plain', 'all is well'),
  nothing: raw(204, '', ''),
  list: json(200, [1, 2]),
  /** JSON can write each letter as its number. */
  escaped: (request, response) => {
    const given = [...(request.headers.authorization ?? '')];
    const told = given.map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    response.writeHead(200, JSON_TYPE).end(`{"got":"${told}"}`);
  },
  as_type: (request, response) => {
    const type = `image/${request.headers.authorization?.replace('Bearer ', '')}`;
    response.writeHead(200, { 'content-type': type }).end('x');
  },
  echo: (request, response) => json(401, { got: request.headers.authorization })(request, response),
};

/** An HTTP API with tickets, which keeps what it got. */
export async function startRestApi(t: Scope): Promise<RestApi> {
  const received: Received[] = [];
  const server = createServer((request, response) => void answer(request, response));
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url = '', headers } = request;
    const path = url.split('?')[0] ?? '';
    if (method === 'HEAD' && path === '/v1/') return void response.writeHead(404).end();
    const got = { method, url, headers, body };
    received.push(got);
    const how = /^\/v1\/misbehave\/(\w+)$/.exec(path)?.[1];
    const misbehaviour = how === undefined ? undefined : MISBEHAVIOURS[how];
    if (misbehaviour) return misbehaviour(got, response);
    if (method === 'HEAD') return void response.writeHead(200, { ...JSON_TYPE, etag: '"7"' }).end();
    if (method === 'DELETE') return void response.writeHead(204).end();
    if (path === '/v1/tickets/wrong') return json(200, { id: 5 })(got, response);
    if (path.startsWith('/v1/tickets/'))
      return json(200, { id: path.slice(12), title: 'A ticket' })(got, response);
    if (method === 'POST') return json(201, { ...JSON.parse(body), id: 'new' })(got, response);
    return json(200, [{ id: '1', title: 'A ticket' }])(got, response);
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.teardown(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, received, stop };
}

const text = { type: 'string' };
const ok = { 200: { description: 'ok' } };
const answering = (schema: object) => ({
  200: { description: 'ok', content: { 'application/json': { schema } } },
});
const id = { $ref: '#/components/parameters/Id' };
const parameter = (place: string, name: string, schema: object, more: object = {}) => ({
  in: place,
  name,
  schema,
  ...more,
});

/** Describes that API. */
export const TICKETS = {
  openapi: '3.1.0',
  info: { title: 'Tickets', version: '1.2.0' },
  servers: [{ url: 'http://elsewhere.invalid/' }],
  paths: {
    '/tickets': {
      get: {
        operationId: 'listTickets',
        summary: 'Lists tickets',
        description: 'The newest first.',
        tags: ['read'],
        parameters: [
          parameter('query', 'state', { enum: ['open', 'closed'] }, { description: 'Only these.' }),
          parameter('query', 'label', { type: 'array', items: text }),
          parameter(
            'query',
            'filter',
            { type: 'object', additionalProperties: text },
            { style: 'deepObject' },
          ),
          parameter('query', 'api_key', text, { required: true }),
          parameter('header', 'X-Trace', text),
          parameter('header', 'Authorization', text, { required: true }),
          parameter('header', 'X-Session-Token', text),
          parameter('header', 'Host', text),
        ],
        responses: answering({ type: 'array', items: { $ref: '#/components/schemas/Ticket' } }),
      },
      post: {
        operationId: 'create ticket!',
        tags: ['write'],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Ticket' } } },
        },
        responses: { 201: { description: 'made' } },
      },
    },
    '/tickets/{id}': {
      parameters: [id],
      get: {
        operationId: 'getTicket',
        tags: ['read'],
        responses: answering({ $ref: '#/components/schemas/Ticket' }),
      },
      head: { operationId: 'headTicket', tags: ['read'], responses: ok },
      put: {
        operationId: 'putTicket',
        tags: ['write'],
        requestBody: { content: { 'application/json': { schema: text } } },
        responses: ok,
      },
      delete: { operationId: 'deleteTicket', tags: ['write'], responses: { 204: { description: 'gone' } } },
    },
    '/misbehave/{how}': {
      get: {
        operationId: 'misbehave',
        parameters: [parameter('path', 'how', text, { required: true })],
        responses: ok,
      },
      post: {
        operationId: 'misbehaveAsObject',
        parameters: [parameter('path', 'how', text, { required: true })],
        responses: answering({ type: 'object', required: ['id'], properties: { id: text } }),
      },
    },
    '/upload': {
      post: {
        operationId: 'upload',
        tags: ['write'],
        requestBody: { required: true, content: { 'multipart/form-data': { schema: { type: 'object' } } } },
        responses: ok,
      },
    },
    '/slow': {
      post: {
        operationId: 'slowPattern',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { type: 'string', pattern: '^(a+)+$' } } },
        },
        responses: ok,
      },
    },
  },
  components: {
    parameters: { Id: parameter('path', 'id', { $ref: '#/components/schemas/Id' }, { required: true }) },
    schemas: {
      Id: { type: 'string', maxLength: 40 },
      Ticket: {
        type: 'object',
        required: ['id', 'title'],
        properties: {
          id: { type: 'string', readOnly: true },
          title: { type: 'string', minLength: 1 },
          parent: { $ref: '#/components/schemas/Ticket' },
        },
      },
    },
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      key: { type: 'apiKey', in: 'query', name: 'api_key' },
    },
  },
};

/** A document in a file. */
export interface StoredDocument {
  readonly document: string;
  readonly digest: string;
}

/** Writes a document into a file of its own. */
export function storeDocument(t: Scope, content: unknown, name = 'openapi.json'): StoredDocument {
  const document = join(tempDir(t), name);
  const bytes = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(document, bytes);
  return { document, digest: digestOf(bytes) };
}

export const digestOf = (bytes: string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
