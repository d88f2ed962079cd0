import { setTimeout as delay } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod/v3';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { recover } from '../../../src/core/kernel/actors/recover.ts';
import { actorRef } from '../../../src/core/kernel/ids.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { fakeDisk } from '../../support/disk.ts';
import { Hosts } from '../../support/hosts/hosts.ts';
import { startSessionServer, startUpstream } from '../../support/mcp-upstream.ts';
import { startNats } from '../../support/nats.ts';
import { RestlessClients } from '../../support/restless-clients.ts';
import { tempDir } from '../../support/temp.ts';
import { read, until } from '../../support/until.ts';

const never = new AbortController().signal;
const LIMIT = 12;
const BEGIN = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};
const gatewayOf = (url: string) => ({
  imports: [],
  list: [
    `gateway({ probeEveryMs: 0, routes: [credentialFree({ name: 'docs', url: ${JSON.stringify(url)} })] })`,
  ],
});

test('[C13,G18] keys, sessions, limits and revocations hold on every host, and survive the host that gave them', async (t) => {
  t.timeout(300_000);
  const [nats, upstream] = await Promise.all([startNats(t), startUpstream(t, true)]);
  const hosts = new Hosts(t, {
    servers: () => nats.url(),
    plugins: gatewayOf(upstream.url),
  });
  const [one, two] = await Promise.all(
    ['one', 'two'].map(async (host) => (await hosts.start(host)).surfaces.gateway?.url ?? ''),
  );
  if (!one || !two) throw new Error(hosts.told());

  const mint = { key_alias: 'app', object_permission: { mcp_servers: ['docs'] }, rpm_limit: LIMIT };
  const key = await mintedAt(hosts.dataDir('one'), mint);
  const client = new Client(t, key);
  await read(
    'the key is known on the other host',
    () => client.asks(two, 'ping'),
    ({ status }) => status !== 401,
  );

  // Revoked at one host, refused by the other from the moment at which it has taken that. How soon that is, the bench measures.
  const leakedKey = await mintedAt(hosts.dataDir('one'), { ...mint, key_alias: 'leaked' });
  const thief = new Client(t, leakedKey);
  await read(
    'the key is known on the other host',
    () => thief.asks(two, 'ping'),
    ({ status }) => status !== 401,
  );
  await postControl(hosts.dataDir('one'), '/gateway/keys/revoke', { name: 'leaked' }, never);
  await until('the other host has taken it', () => isRevoked(hosts.dataDir('two'), leakedKey));
  t.is((await thief.asks(two, 'ping')).status, 401);

  // A session made at one host goes on at the other, also when the first is gone.
  const session = await client.initialize(one);
  t.is((await client.asks(two, 'tools/list', session)).status, 200);

  // The limit is that of the cluster, whichever host is asked.
  let admitted = 0;
  for (let i = 0; i < 2 * LIMIT; i += 1) {
    const { text } = await client.asks(i % 2 === 0 ? one : two, 'tools/call', session, {
      name: 'docs-echo',
      arguments: { text: 'hi' },
    });
    if (!/Rate limit/.test(text)) admitted += 1;
  }
  t.true(admitted >= LIMIT / 2, `${admitted} calls were admitted`);
  t.true(admitted <= LIMIT + 2, `${admitted} calls were admitted: one slice a host more at most`);

  await hosts.end('one', 'SIGKILL');
  t.is(
    (await client.asks(two, 'tools/list', session)).status,
    200,
    'the session outlives the host that made it',
  );

  // A revocation holds also on a host that was away meanwhile.
  await postControl(hosts.dataDir('two'), '/gateway/keys/revoke', { name: 'app' }, never);
  t.is((await client.asks(two, 'tools/list', session)).status, 401);
  const again = (await hosts.start('one')).surfaces.gateway?.url ?? '';
  await read(
    'the host that was away knows it',
    () => client.asks(again, 'tools/list', session),
    ({ status }) => status === 401,
  );

  // One story, whose replay decides the same on each host.
  const verified = await hosts.command('two', 'replay', 'verify', '--host', 'all');
  t.is(verified.code, 0, verified.out + verified.err);
  const story = await hosts.command('two', 'log', 'list', '--host', 'all', '--all', '--limit', '0');
  t.is(story.code, 0, story.err);
  t.regex(story.out, /\bone\b/);
  t.regex(story.out, /\btwo\b/);
});

test('[C13,G6,G18] a host whose disk is full admits nothing by keys that were revoked elsewhere, says so, and knows it when there is room again and after a crash', async (t) => {
  t.timeout(300_000);
  const [nats, upstream, disk] = await Promise.all([
    startNats(t),
    startUpstream(t, true),
    fakeDisk(tempDir(t)),
  ]);
  const hosts = new Hosts(t, {
    servers: () => nats.url(),
    plugins: gatewayOf(upstream.url),
    envOf: (host) => (host === 'two' ? disk.env : {}),
  });
  const gateways = await Promise.all(
    ['one', 'two'].map(async (host) => (await hosts.start(host)).surfaces.gateway?.url ?? ''),
  );
  const two = gateways[1] ?? '';
  const operate = (path: string, body: object) => postControl(hosts.dataDir('one'), path, body, never);
  const mint = async (key_alias: string) => {
    const wish = { key_alias, object_permission: { mcp_servers: ['docs'] } };
    const client = new Client(t, await mintedAt(hosts.dataDir('one'), wish));
    const serves = () => client.asks(two, 'ping');
    await read('the other host knows it', serves, ({ status }) => status !== 401);
    return client;
  };
  const [kept, first, second] = [await mint('kept'), await mint('first'), await mint('second')];
  const answers = async (client: Client, gateway: string, isLast: (status: number) => boolean) => {
    const seen = new Set<number>();
    const ask = async () => {
      const { status } = await client.ask(gateway, 'initialize', undefined, BEGIN);
      seen.add(status);
      return status;
    };
    await read('it answers so', ask, isLast, 50);
    return [...seen];
  };
  const fillAndRevoke = async (name: string) => {
    disk.fill('/data/');
    await answers(kept, two, (status) => status === 503);
    await operate('/gateway/keys/revoke', { name });
    const status = () => hosts.command('two', 'cluster', 'status');
    await read('it says so', status, ({ out }) => /may be unread here.*refuses calls/.test(out));
  };

  await fillAndRevoke('first');
  const end = performance.now() + 2_500;
  t.deepEqual(await answers(first, two, () => performance.now() > end), [503]);
  disk.free();
  t.deepEqual(await answers(first, two, (status) => status !== 503), [503, 401]);
  t.is((await kept.asks(two, 'initialize', undefined, BEGIN)).status, 200);

  await fillAndRevoke('second');
  await hosts.end('two', 'SIGKILL');
  disk.free();
  const again = (await hosts.start('two')).surfaces.gateway?.url ?? '';
  t.is((await answers(second, again, (status) => status !== 503)).at(-1), 401);
  t.is((await kept.asks(again, 'initialize', undefined, BEGIN)).status, 200);
});

test('[C13,G18] in a rolling restart of real hosts, as the guide has it, no call of a client that tries the other host fails, and each is carried out once', async (t) => {
  t.timeout(300_000);
  const worked: string[] = [];
  const serve = () => {
    const server = new McpServer({ name: 'docs', version: '1' });
    server.registerTool('work', { inputSchema: { call: z.string() } }, async ({ call }) => {
      worked.push(call);
      await delay(40);
      return { content: [{ type: 'text', text: 'done' }] };
    });
    return server;
  };
  const [nats, upstream] = await Promise.all([startNats(t), startSessionServer(t, { serve, json: true })]);
  const hosts = new Hosts(t, { servers: () => nats.url(), plugins: gatewayOf(upstream.url) });
  const names = ['one', 'two'];
  await Promise.all(names.map((name) => hosts.start(name)));
  const wish = { key_alias: 'app', object_permission: { mcp_servers: ['docs'] } };
  const client = new Client(t, await mintedAt(hosts.dataDir('one'), wish));
  await read(
    'the key is known on the other host',
    () => client.asks(hosts.gateway('two'), 'ping'),
    ({ status }) => status !== 401,
  );
  const session = await client.initialize(hosts.gateway('one'));
  const clients = new RestlessClients(4, (call, attempt) => {
    const gateway = hosts.gateway(names[(call + attempt) % 2] ?? '');
    const work = { name: 'docs-work', arguments: { call: String(call) } };
    return client.post(gateway, 'tools/call', session, work, `${call}.${attempt}`);
  });
  for (const name of names) {
    await clients.more();
    const drained = await hosts.command(name, 'cluster', 'drain');
    t.is(drained.code, 0, drained.err);
    await clients.more();
    await hosts.end(name, 'SIGTERM');
    await clients.more();
    const { surfaces } = await hosts.start(name);
    await read(
      'it can serve',
      () => fetch(`${surfaces.console?.url}/readyz`),
      ({ ok }) => ok,
    );
  }
  await clients.more();
  await clients.end();
  const { answered, refused, failures } = clients;
  t.log(`${answered} calls, ${refused} refused by a host that stopped or had just started`);
  t.deepEqual(failures, []);
  t.is(worked.length, answered, 'none was cut, and carried out again');
  t.is(new Set(worked).size, answered);
});

/** Makes a key at a host, as soon as that one reaches the others. @returns its value */
async function mintedAt(dataDir: string, wish: object): Promise<string> {
  const minted = await read(
    'a key is made',
    () => postControl(dataDir, '/gateway/keys/mint', wish, never),
    ({ status }) => status === 200,
  );
  return (minted.body as { readonly key: string }).key;
}

/** @returns what the log of a host says of a key */
function isRevoked(dataDir: string, key: string): boolean {
  const reader = new SqliteReader(dataDir);
  try {
    return recover(reader).states.get(actorRef(keyActor.type, keyId(key)))?.value === 'revoked';
  } finally {
    reader.close();
  }
}

/** A client of the gateway, wherever it is. */
class Client {
  readonly #t: ExecutionContext;
  readonly #key: string;

  constructor(t: ExecutionContext, key: string) {
    this.#t = t;
    this.#key = key;
  }

  async initialize(gateway: string): Promise<string> {
    const answer = await this.asks(gateway, 'initialize', undefined, BEGIN);
    this.#t.is(answer.status, 200, answer.text);
    return answer.session ?? '';
  }

  /** Asks again while the host says that it has to read what it missed: a slow machine may stand still for long enough. */
  asks(gateway: string, method: string, session?: string, params: object = {}) {
    return read(
      'the host serves',
      () => this.ask(gateway, method, session, params),
      ({ status }) => status !== 503,
    );
  }

  async ask(gateway: string, method: string, session?: string, params: object = {}) {
    const answer = await this.post(gateway, method, session, params);
    return {
      status: answer.status,
      session: answer.headers.get('mcp-session-id') ?? undefined,
      text: await answer.text(),
    };
  }

  post(gateway: string, method: string, session?: string, params: object = {}, id = '1'): Promise<Response> {
    return fetch(`${gateway}/docs/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-gateway-api-key': `Bearer ${this.#key}`,
        ...(session !== undefined && { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
    });
  }
}
