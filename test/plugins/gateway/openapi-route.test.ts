import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test, { type ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { documentsCheck } from '../../../src/plugins/gateway/commands/openapi.ts';
import { credentialFree, overwrite } from '../../../src/plugins/gateway/index.ts';
import { readRouteEntries } from '../../../src/plugins/gateway/routes/entries.ts';
import {
  digestOf,
  type RestApi,
  type StoredDocument,
  startRestApi,
  storeDocument,
  TICKETS,
} from '../../support/rest-api.ts';
import { tempDir } from '../../support/temp.ts';
import { FileRig } from './file-rig.ts';
import { admission, initialize, Rig } from './rig.ts';
import { until } from './talkers.ts';

const ALL = [
  'listTickets',
  'create ticket!',
  'getTicket',
  'headTicket',
  'putTicket',
  'deleteTicket',
  'misbehave',
  'misbehaveAsObject',
  'slowPattern',
];
const TOKEN = 'canary-of-the-upstream';
const { signal } = new AbortController();

interface Opened {
  readonly rig: Rig;
  readonly api: RestApi;
  readonly stored: StoredDocument;
  readonly client: Client;
}

/** One gateway with a route that has all operations, and one that only reads. */
async function open(t: ExecutionContext, settings: object = {}, gateway: object = {}): Promise<Opened> {
  const api = await startRestApi(t);
  const stored = storeDocument(t, TICKETS);
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, TOKEN);
  chmodSync(tokenFile, 0o600);
  const openapi = { ...stored, baseUrl: api.url, ...settings };
  const rig = await Rig.start(t, {
    ...gateway,
    routes: [
      overwrite({ name: 'tickets', tokenFile, writes: true, openapi: { operations: ALL, ...openapi } }),
      credentialFree({ name: 'reading', openapi: { tags: ['read', 'write'], ...openapi } }),
    ],
  });
  const key = await rig.mint({ servers: ['tickets', 'reading'] });
  for (const route of ['tickets', 'reading']) {
    // The start waits some seconds for a document; on a busy machine it is read later.
    await until(t, `${route} is served`, async () => {
      const { status } = await rig.post(`/${route}/mcp`, initialize, admission(key));
      return status === 200;
    });
  }
  const client = await rig.connect(t, 'tickets', key);
  return { rig, api, stored, client };
}

interface ToolResult {
  readonly isError: boolean;
  readonly text: string;
  readonly data: unknown;
}

async function call(client: Client, tool: string, given: Record<string, unknown> = {}): Promise<ToolResult> {
  const result = await client.callTool({ name: `tickets-${tool}`, arguments: given });
  const content = result.content as { text: string }[];
  return {
    isError: result.isError === true,
    text: content.map(({ text }) => text).join('\n'),
    data: result.structuredContent,
  };
}

test.serial(
  '[G1] operations of an OpenAPI document are tools, with honest annotations, called with the credential of the route',
  async (t) => {
    const { rig, api, client } = await open(t);
    const { tools } = await client.listTools();
    const tool = (name: string) => tools.find((one) => one.name === `tickets-${name}`);
    t.deepEqual(tools.map(({ name }) => name).sort(), [
      'tickets-create_ticket_',
      'tickets-deleteTicket',
      'tickets-getTicket',
      'tickets-headTicket',
      'tickets-listTickets',
      'tickets-misbehave',
      'tickets-misbehaveAsObject',
      'tickets-putTicket',
      'tickets-slowPattern',
    ]);
    t.like(tool('listTickets'), {
      title: 'Lists tickets',
      description: 'Lists tickets\n\nThe newest first.',
      annotations: { readOnlyHint: true },
    });
    t.like(tool('headTicket')?.annotations, { readOnlyHint: true });
    t.like(tool('deleteTicket')?.annotations, { readOnlyHint: false, destructiveHint: true });
    t.like(tool('putTicket')?.annotations, { readOnlyHint: false, idempotentHint: true });
    t.like(tool('create_ticket_')?.annotations, { readOnlyHint: false, idempotentHint: false });
    t.deepEqual(
      Object.keys(tool('listTickets')?.inputSchema.properties ?? {}),
      ['state', 'label', 'filter', 'X-Trace'],
      'no argument is a credential, or a header of the protocol',
    );
    t.is(tool('listTickets')?.outputSchema, undefined, 'its answer is no object');
    t.deepEqual(tool('getTicket')?.outputSchema?.required, ['id', 'title']);

    const given = { state: 'open', label: ['a b', 'c&d'], filter: { x: '1=2' }, 'X-Trace': 't-1' };
    t.is((await call(client, 'listTickets', given)).text, '[{"id":"1","title":"A ticket"}]');
    t.like(api.received.at(-1), {
      method: 'GET',
      url: '/v1/tickets?state=open&label=a%20b&label=c%26d&filter%5Bx%5D=1%3D2',
      headers: { authorization: `Bearer ${TOKEN}`, 'x-trace': 't-1' },
    });
    t.deepEqual((await call(client, 'getTicket', { id: 'a/b' })).data, { id: 'a%2Fb', title: 'A ticket' });
    const made = await call(client, 'create_ticket_', { body: { title: 'New', parent: { title: 'Old' } } });
    t.deepEqual(made.data, { title: 'New', parent: { title: 'Old' }, id: 'new' });
    t.is(api.received.at(-1)?.headers['content-type'], 'application/json');
    t.is((await call(client, 'deleteTicket', { id: '7' })).text, 'The API answered 204, without a body.');
    t.regex((await call(client, 'headTicket', { id: '7' })).text, /^The API answered 200\.\n.*etag: "7"$/s);
    t.deepEqual(await rig.traces(TOKEN), []);
    const calls = (await rig.ended(5)).filter(({ method }) => method === 'tools/call');
    t.true(calls.length >= 5 && calls.every(({ outcome }) => outcome === 'ok'));
  },
);

test.serial(
  '[G1] arguments are checked before anything is sent, and none leads elsewhere or adds a header',
  async (t) => {
    const { api, client } = await open(t);
    const refused: [string, Record<string, unknown>, RegExp][] = [
      [
        'listTickets',
        { state: 'lost' },
        /\/state must be equal to one of the allowed values \(\["open","closed"\]\)/,
      ],
      ['listTickets', { unknown: 1 }, /additional properties \(unknown\)/],
      ['listTickets', { Authorization: 'Bearer mine' }, /additional properties \(Authorization\)/],
      ['listTickets', { api_key: 'mine' }, /additional properties \(api_key\)/],
      ['listTickets', { 'X-Trace': 'a\r\nX-Admin: yes' }, /X-Trace is sent in a header/],
      ['listTickets', { 'X-Trace': 'a\nb' }, /X-Trace is sent in a header/],
      ['listTickets', { filter: { x: { y: 'z' } } }, /\/filter\/x must be string/],
      ['getTicket', {}, /required property 'id'/],
      ['getTicket', { id: '' }, /id is sent in the path, and must not be empty/],
      ['getTicket', { id: 'x'.repeat(41) }, /\/id must NOT have more than 40 characters/],
      ['getTicket', { id: '..' }, /must not have \. or \.\./],
      ['getTicket', { id: '../admin' }, /must not have \. or \.\./],
      ['getTicket', { id: 'a/../../admin' }, /must not have \. or \.\./],
      ['getTicket', { id: '..\\admin' }, /must not have \. or \.\./],
      ['getTicket', { id: '%2e%2e%2fadmin' }, /must not have \. or \.\./],
      ['getTicket', { id: '%252e%252e/admin' }, /must not have \. or \.\./],
      ['getTicket', { id: '..;x=1/admin' }, /must not have \. or \.\./],
      ['getTicket', { id: '%2e%2e%3Bx' }, /must not have \. or \.\./],
      ['getTicket', { id: 'a\r\nb' }, /must not have control characters/],
      ['create_ticket_', {}, /required property 'body'/],
      ['create_ticket_', { body: { title: '' } }, /\/body\/title must NOT have fewer than 1/],
      [
        'create_ticket_',
        { body: { title: 'a', parent: {} } },
        /\/body\/parent must have required property 'title'/,
      ],
      ['slowPattern', { body: `${'a'.repeat(60)}b` }, /can not be checked within 500 ms/],
    ];
    for (const [tool, given, reason] of refused) {
      const result = await call(client, tool, given);
      t.true(result.isError, tool);
      t.regex(result.text, /^Nothing was sent: /);
      t.regex(result.text, reason);
    }
    t.deepEqual(api.received, []);
  },
);

test.serial(
  '[G1] whatever the API does wrong is an error of the tool that says so, and no redirect is followed',
  async (t) => {
    const { rig, api, client } = await open(t, { timeoutMs: 1_500, maxAnswer: 60_000 });
    const wrong: [string, RegExp][] = [
      ['missing', /^The API answered 404: \{"error":"there is no such ticket"\}$/],
      ['broken', /^The API answered 500: the database is away$/],
      ['picture_error', /^The API answered 503: \(image\/png\)$/],
      ['redirect', /^The API answered 302, a redirect, which is not followed\.$/],
      ['no_json', /^The API answered 200 with a body that is no JSON: its answer can not be read\.$/],
      ['deep', /^The API answered 200 with a body that is no JSON/],
      ['picture', /^The API answered 200 with image\/png, which is neither JSON nor text/],
      ['packed', /^The API answered 200 with the content coding gzip/],
      ['large', /^The answer of the API is too large: the answer is larger than 60000 bytes/],
      ['long', /^The answer of the API is too large/],
      ['hang', /^The API did not answer in time: nothing came within 1\.5 s\. Whether it did what was asked/],
      ['cut', /^The API broke its answer off: .*Whether it did what was asked is not known/],
    ];
    for (const [how, reason] of wrong) {
      const result = await call(client, 'misbehave', { how });
      t.true(result.isError, how);
      t.regex(result.text, reason);
    }
    t.false(api.received.some(({ url }) => url.endsWith('/stolen')));
    t.deepEqual(await call(client, 'misbehave', { how: 'text' }), {
      isError: false,
      text: 'all is well',
      data: undefined,
    });
    const asObject: [string, RegExp][] = [
      ['list', /^The API answered 200, but not as its document says: must be object\.\n\[1,2\]$/],
      ['text', /^The API answered 200 with text\/plain in place of JSON/],
      ['nothing', /^The API answered 204 without the body that its document promises/],
    ];
    for (const [how, reason] of asObject) {
      const result = await call(client, 'misbehaveAsObject', { how });
      t.true(result.isError, how);
      t.regex(result.text, reason);
    }
    t.regex((await call(client, 'getTicket', { id: 'wrong' })).text, /not as its document says/);
    const echoed = await call(client, 'misbehave', { how: 'echo' });
    t.regex(echoed.text, /^The API answered 401: /);
    t.notRegex(echoed.text, new RegExp(TOKEN));
    for (const how of ['escaped', 'as_type']) {
      const { text, data } = await call(client, 'misbehave', { how });
      t.regex(text, /redacted/, how);
      t.notRegex(JSON.stringify([text, data]), new RegExp(TOKEN, 'i'), how);
    }
    await api.stop();
    t.regex(
      (await call(client, 'getTicket', { id: '1' })).text,
      /^The API can not be reached: nothing listens there/,
    );
    t.deepEqual(await rig.traces(TOKEN), []);
  },
);

test.serial('[G1] a long error of an API is cut', async (t) => {
  const { client } = await open(t);
  const { text } = await call(client, 'misbehave', { how: 'long' });
  t.regex(text, /^The API answered 500: long long/);
  t.true(text.length < 4_200);
});

test.serial(
  '[G1] a route without `writes` has no operation that writes: not by tag, and by id it is refused by name',
  async (t) => {
    const { rig, api, stored } = await open(t);
    const reading = await rig.connect(t, 'reading', await rig.mint({ servers: ['reading'] }));
    t.deepEqual((await reading.listTools()).tools.map(({ name }) => name).sort(), [
      'reading-getTicket',
      'reading-headTicket',
      'reading-listTickets',
    ]);
    t.true(
      rig.lines.some(
        (line) =>
          /openapi_left_out.*create ticket!: POST may change something/.test(line) ||
          /create ticket!: POST may change something.*openapi_left_out/.test(line),
      ),
    );
    const bad = credentialFree({
      name: 'bad',
      openapi: { ...stored, baseUrl: api.url, operations: ['deleteTicket'] },
    });
    const other = await Rig.start(t, { routes: [bad] });
    const reason = () => (other.runtime.health().gateway as { reason?: string }).reason;
    await until(t, 'the document is read', () => reason() !== undefined);
    t.regex(
      reason() ?? '',
      /route bad: .*its operation deleteTicket: DELETE may change something: set writes: true/,
    );
  },
);

test.serial(
  '[G1,G17] its health is that of the API: tools that are listed prove nothing of it',
  async (t) => {
    const { rig, api } = await open(t, {}, { probeEveryMs: 50 });
    const health = () => (rig.runtime.health().gateway as { upstreams: any }).upstreams.reading;
    await until(t, 'it is healthy', () => health().state === 'healthy');
    t.is(health().tools, 3);
    await api.stop();
    await until(t, 'it is down', () => health().state === 'down');
    t.regex(health().reason, /^can not be reached: nothing listens there/);
  },
);

test.serial(
  '[G1,G24] a route is listed with its API, and tools of another document are pinned like those of any upstream',
  async (t) => {
    const { rig, api } = await open(t, {}, { probeEveryMs: 50 });
    const { body } = await postControl(rig.dataDir, '/gateway/routes', {}, signal);
    t.like((body as any).routes, [
      { name: 'reading', disposition: 'credential_free', upstream: `the API at ${api.url}` },
      { name: 'tickets', disposition: 'overwrite', upstream: `the API at ${api.url}` },
    ]);
    await until(
      t,
      'its tools were seen',
      () => rig.runtime.services.actors.snapshot('gateway.tool_pins/tickets') !== undefined,
    );
  },
);

test.serial(
  '[G1,G24] a document that changed is refused with both digests, and what served goes on, until the entry pins the new one',
  async (t) => {
    const api = await startRestApi(t);
    const stored = storeDocument(t, TICKETS);
    const entry = (digest: string) =>
      `credentialFree({ name: 'tickets', openapi: { document: '${stored.document}', digest: '${digest}', baseUrl: '${api.url}', operations: ['getTicket'] } }),`;
    const rig = await FileRig.open(t, entry(stored.digest));
    const key = await rig.mint({ servers: ['tickets'] });
    const title = 'A changed document';
    const changed = JSON.stringify({ ...TICKETS, info: { title, version: '2' } });
    writeFileSync(stored.document, changed);
    const other = digestOf('something else');
    const { body } = await rig.reload(entry(other));
    const both = `has the digest ${digestOf(changed)}, and its entry pins ${other}`;
    t.true(JSON.stringify(body.rejected).includes(both), JSON.stringify(body));
    const result = await call(await rig.connect(t, 'tickets', key), 'getTicket', { id: '1' });
    t.deepEqual(result.data, { id: '1', title: 'A ticket' }, 'the last good one goes on');
    const check = documentsCheck([
      credentialFree({ name: 'tickets', openapi: { ...stored, baseUrl: api.url, tags: ['read'] } }),
    ]);
    const found = await check?.run({ dataDir: rig.dataDir, signal });
    t.is(found?.state, 'fail');
    t.true(found?.found.includes(digestOf(changed)) && found.found.includes(stored.digest));
    t.deepEqual((await rig.reload(entry(digestOf(changed)))).body.rejected, []);
    t.like((await rig.connect(t, 'tickets', key)).getServerVersion(), { name: title, version: '2' });
    const good = documentsCheck([
      credentialFree({
        name: 'tickets',
        openapi: { ...stored, digest: digestOf(changed), baseUrl: api.url, tags: ['read'] },
      }),
    ]);
    t.is((await good?.run({ dataDir: rig.dataDir, signal }))?.state, 'ok');
    rmSync(stored.document);
    t.is((await good?.run({ dataDir: rig.dataDir, signal }))?.state, 'unknown');
    t.is(documentsCheck([]), undefined);
  },
);

test.serial(
  '[G1] a document at an address that does not answer holds nothing up, and is no reason to refuse the route',
  async (t) => {
    const away = {
      document: 'http://127.0.0.1:1/openapi.json',
      digest: digestOf(''),
      baseUrl: 'http://127.0.0.1:1',
      tags: ['read'],
    };
    const rig = await Rig.start(t, { routes: [credentialFree({ name: 'tickets', openapi: away })] });
    const { body } = await postControl(rig.dataDir, '/gateway/routes', {}, signal);
    t.like((body as any).routes, [{ reason: 'its OpenAPI document can not be read at the moment' }]);
    t.true(rig.lines.some((line) => line.includes('gateway.openapi_unread')));
  },
);

test('[G1] entries of an API are refused by what is wrong with them', (t) => {
  const openapi = {
    document: 'a.json',
    digest: digestOf(''),
    baseUrl: 'http://127.0.0.1:1/v1',
    tags: ['read'],
  };
  const reason = (entry: object) => {
    const given = { name: 'tickets', disposition: 'credential_free', ...entry };
    return readRouteEntries([given], {}).rejected[0]?.reason ?? 'it was taken';
  };
  t.is(reason({ openapi }), 'it was taken');
  t.regex(reason({ openapi: { ...openapi, tags: [] } }), /name the operations, or tags of them/);
  t.regex(reason({ openapi: { ...openapi, digest: 'sha256:1' } }), /digest/);
  t.regex(reason({ openapi: { ...openapi, baseUrl: 'http://a:b@c/' } }), /a user or a password/);
  t.regex(reason({ openapi: { ...openapi, baseUrl: 'http://a/?b=c' } }), /a query/);
  t.regex(reason({ openapi, url: 'http://127.0.0.1:1/mcp' }), /^openapi: url is set as well/);
  t.regex(reason({ openapi, disposition: 'relay' }), /^openapi: its credential is a token of the gateway/);
  const elsewhere = { ...openapi, baseUrl: 'http://api.example.net' };
  t.regex(reason({ openapi: elsewhere, disposition: 'overwrite' }), /^insecure: its token would go to/);
});
