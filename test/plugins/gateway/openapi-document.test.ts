import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { resultOf } from '../../../src/plugins/gateway/openapi/description.ts';
import type { ApiTool, Selection } from '../../../src/plugins/gateway/openapi/model.ts';
import { findDocument } from '../../../src/plugins/gateway/openapi/source.ts';
import { digestOf, storeDocument, TICKETS } from '../../support/rest-api.ts';

const ALL: Selection = { operations: ['op'], tags: [], writes: true };

const read = async (content: unknown, selection = ALL) => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return resultOf({ text, selection });
};

async function toolsOf(content: unknown): Promise<readonly ApiTool[]> {
  const result = await read(content);
  if (!result.ok) throw new Error(result.reason);
  return result.api.tools;
}

async function refusal(content: unknown, selection = ALL): Promise<string> {
  const result = await read(content, selection);
  return result.ok ? 'it was taken' : result.reason;
}

const ok = { 200: { description: 'ok' } };
const api = (operation: object, more: object = {}, path = '/things', openapi = '3.1.0') => ({
  openapi,
  info: { title: 'Things', version: '1' },
  paths: { [path]: { get: { operationId: 'op', responses: ok, ...operation } } },
  ...more,
});
const asked = (schema: object, more: object = {}) => ({
  parameters: [{ in: 'query', name: 'q', schema, ...more }],
});

/** References that double at each step: as a tree there would be 2^40 of them. */
const DOUBLING = Object.fromEntries(
  Array.from({ length: 40 }, (_, level) => {
    const next = { $ref: `#/components/schemas/S${level + 1}` };
    return [`S${level}`, level === 39 ? { type: 'string' } : { anyOf: [next, next] }];
  }),
);

test('[G1] a document that leads elsewhere, or grows without bound, is refused by what it does', async (t) => {
  const contents = new Map<string, unknown>([
    ['file', api(asked({ $ref: 'file:///etc/passwd' }))],
    ['relative', api(asked({ $ref: '../../secrets.json#/a' }))],
    ['http', api(asked({ $ref: 'http://127.0.0.1:1/schema.json' }))],
    ['parameter', api({ parameters: [{ $ref: 'https://evil.invalid/p.json' }] })],
    ['missing', api(asked({ $ref: '#/components/schemas/Nothing' }))],
    ['itself', api(asked({ $ref: '#/paths/~1things/get/parameters/0/schema' }))],
    ['deep', `{"openapi":"3.1.0","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['deepYaml', `openapi: 3.1.0\na: ${'['.repeat(2_000)}${']'.repeat(2_000)}`],
    ['aliases', 'a: &a [x]\nb: &b [*a, *a]\nopenapi: 3.1.0'],
    ['prototype', '{"openapi":"3.1.0","__proto__":{}}'],
    [
      'two',
      {
        ...api({}),
        paths: {
          '/a': { get: { operationId: 'op', responses: ok } },
          '/b': { get: { operationId: 'op', responses: ok } },
        },
      },
    ],
    ['old', { swagger: '2.0', info: { title: 'x', version: '1' }, paths: {} }],
    ['noJson', '{"openapi": '],
    ['invalid', { ...api({}), info: {} }],
    ['noPath', api({}, {}, '/things/{id}')],
    ['host', api({}, {}, '@evil.invalid/')],
    ['cookie', api({ parameters: [{ in: 'cookie', name: 'session', required: true, schema: {} }] })],
    ['upload', api({ requestBody: { required: true, content: { 'image/png': {} } } })],
    ['schema', api(asked({ type: 'nonsense' }))],
    ['id', api(asked({ $id: 'http://evil.invalid/' }))],
    ['headerName', api({ parameters: [{ in: 'header', name: 'a\r\nb', schema: {} }] })],
  ]);
  const reasons = new Map(
    await Promise.all([...contents].map(async ([name, content]) => [name, await refusal(content)] as const)),
  );
  const expected: [string, RegExp][] = [
    ['file', /^it refers to file:\/\/\/etc\/passwd, which is not in the document$/],
    ['relative', /^it refers to \.\.\/\.\.\/secrets\.json#\/a, which is not in the document$/],
    ['http', /^it refers to http:\/\/127\.0\.0\.1:1\/schema\.json, which is not in the document$/],
    ['parameter', /^it refers to https:\/\/evil\.invalid\/p\.json, which is not in the document$/],
    ['missing', /its operation op: it refers to #\/components\/schemas\/Nothing, which is not there$/],
    ['itself', /./],
    ['deep', /^it is nested deeper than 64 levels$/],
    ['deepYaml', /^it is (nested|neither)/],
    ['aliases', /^it is neither JSON nor YAML: /],
    ['prototype', /^a name in it is __proto__$/],
    ['two', /^the operations GET \/a and GET \/b have the same id op$/],
    ['old', /^it is no OpenAPI document of version 3\.0 or 3\.1$/],
    ['noJson', /^it is neither JSON nor YAML/],
    ['invalid', /^it is not valid: #\/info/],
    ['noPath', /^its operation op: its path and its parameters do not agree on \{id\}$/],
    ['host', /./],
    ['cookie', /needs the cookie session, and cookies are not supported$/],
    ['upload', /its body is image\/png, and only JSON is supported$/],
    ['schema', /one of its schemas is not valid/],
    ['id', /a schema has \$id, which is not supported$/],
    ['headerName', /is no name of a header$/],
  ];
  for (const [name, reason] of expected) {
    t.not(reasons.get(name), 'it was taken', name);
    t.regex(reasons.get(name) ?? '', reason, name);
  }
});

test('[G1] schemas that contain themselves, or double at each step, become schemas of bounded size', async (t) => {
  const tools = await toolsOf(
    api(asked({ $ref: '#/components/schemas/S0' }), {
      components: {
        schemas: { ...DOUBLING, Tree: { properties: { next: { $ref: '#/components/schemas/Tree' } } } },
      },
    }),
  );
  t.is(Object.keys((tools[0]!.inputSchema as any).$defs).length, 40);
  t.true(JSON.stringify(tools).length < 10_000);
});

test('[G1] a document of version 3.0 is read as JSON Schema 2020-12: null, limits, and what is only sent or only received', async (t) => {
  const item = {
    type: 'object',
    required: ['id', 'secret', 'size'],
    properties: {
      id: { type: 'string', readOnly: true },
      secret: { type: 'string', writeOnly: true },
      size: { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
      kind: { type: 'string', nullable: true, enum: ['a'], xml: { name: 'k' } },
    },
  };
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } };
  const [tool] = await toolsOf(
    api(
      { requestBody: { required: true, content }, responses: { 200: { description: 'ok', content } } },
      { components: { schemas: { Item: item } } },
      '/things',
      '3.0.3',
    ),
  );
  t.deepEqual((tool!.inputSchema as any).$defs.Item, {
    type: 'object',
    properties: {
      secret: { type: 'string' },
      size: { type: 'integer', exclusiveMinimum: 0, maximum: 9 },
      kind: { type: ['string', 'null'], enum: ['a', null] },
    },
    required: ['secret', 'size'],
  });
  t.deepEqual((tool!.outputSchema as any).required, ['id', 'size']);
  t.is((tool!.outputSchema as any).properties.secret, undefined);
});

test('[G1] two operations that would be one tool are refused by both, and so are unknown ids and tags', async (t) => {
  const operation = (operationId: string) => ({ get: { operationId, tags: ['all'], responses: ok } });
  const content = { ...api({}), paths: { '/a': operation('a b'), '/b': operation('a/b') } };
  const by = (more: Partial<Selection>) =>
    refusal(content, { operations: [], tags: [], writes: false, ...more });
  t.is(await by({ tags: ['all'] }), 'the operations a b and a/b would both be the tool a_b');
  t.is(await by({ operations: ['c'] }), 'it has no operation c');
  t.is(await by({ tags: ['none'] }), 'none of its operations has the tag none');
});

test('[G1] parameters of one name are told apart by their places', async (t) => {
  const parameters = (['path', 'query'] as const).map((place) => ({
    in: place,
    name: 'id',
    schema: { type: 'string' },
    ...(place === 'path' && { required: true }),
  }));
  const tools = await toolsOf(api({ parameters }, {}, '/things/{id}'));
  t.deepEqual(tools[0]?.inputSchema.required, ['path_id']);
  t.deepEqual(
    tools[0]?.parameters.map(({ argument }) => argument),
    ['path_id', 'query_id'],
  );
});

test('[G1] a document that is too large, no file, or behind a redirect is refused, and its digest is of its bytes', async (t) => {
  const large = `{"openapi":"3.1.0","x":"${'x'.repeat(10 * 1024 * 1024)}"}`;
  const server = createServer(({ url }, response) => {
    if (url?.startsWith('/moved')) response.writeHead(302, { location: '/api' }).end();
    else response.end(url === '/large' ? large : JSON.stringify(TICKETS));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const http = new HttpClient({ timeoutMs: 60_000, answerLimit: 8 * 1024 * 1024, keepAlive: false });
  t.teardown(() => http.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reason = (document: string) =>
    findDocument(document, http).then(
      () => 'it was taken',
      (error) => error.what as string,
    );
  t.regex(await reason(storeDocument(t, large).document), /it is larger than 8388608 bytes/);
  t.regex(await reason(`${base}/large`), /it is larger than 8388608 bytes/);
  t.regex(
    await reason(`${base}/moved?key=canary`),
    /\/moved can not be read: its server answers with status 302/,
  );
  t.regex(await reason('/dev/zero'), /it is no file/);
  t.regex(await reason('/nowhere/at/all'), /it can not be read \(ENOENT\)/);
  t.is((await findDocument(`${base}/api`, http)).digest, digestOf(JSON.stringify(TICKETS)));
  t.is((await findDocument(storeDocument(t, 'a: 1', 'a.yaml').document, http)).digest, digestOf('a: 1'));
});
