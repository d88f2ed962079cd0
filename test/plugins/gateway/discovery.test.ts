import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { DocumentCache } from '../../../src/plugins/gateway/discovery/document-cache.ts';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { listen } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, Rig } from './rig.ts';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const document = {
  resource: 'https://upstream.internal/mcp',
  authorization_servers: ['https://idp.example.net/realms/home'],
  scopes_supported: ['mcp-cluster', 'groups', 'offline_access'],
  x_own: { kept: true },
};

interface Site {
  readonly url: string;
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** What it answers by path; nothing is 404. */
  readonly pages: Map<string, (response: ServerResponse) => void>;
}

async function site(t: ExecutionContext): Promise<Site> {
  const asked: Site['asked'] = [];
  const pages: Site['pages'] = new Map();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push({ path, headers: request.headers });
    const page = pages.get(path);
    if (page) page(response);
    else response.writeHead(404).end('no such page');
  });
  await listen(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked, pages };
}

const json = (value: unknown) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

async function discover(rig: Rig, server: string): Promise<{ status: number; body: any }> {
  const answer = await fetch(`${rig.url}${WELL_KNOWN}/${server}/mcp`);
  return { status: answer.status, body: await answer.json() };
}

test("[G13] the upstream's document is relayed with nothing but its resource rewritten", async (t) => {
  const upstream = await site(t);
  upstream.pages.set(`${WELL_KNOWN}/mcp`, json(document));
  const url = `${upstream.url}?apiKey=hidden`;
  const rig = await Rig.start(t, {
    routes: [relay({ name: 'cluster', url })],
    publicUrl: 'https://mcp.example.net/',
  });
  t.deepEqual(await discover(rig, 'cluster'), {
    status: 200,
    body: { ...document, resource: 'https://mcp.example.net/cluster/mcp' },
  });
  t.deepEqual(
    upstream.asked.map(({ path }) => path),
    [`${WELL_KNOWN}/mcp`],
  );
  t.false(upstream.asked.some(({ headers }) => 'authorization' in headers));
});

test('[G13] a document at the root is found, and without a public URL the resource is what the client calls', async (t) => {
  const upstream = await site(t);
  upstream.pages.set(WELL_KNOWN, json(document));
  const rig = await Rig.start(t, { routes: [relay({ name: 'memory', url: upstream.url })] });
  t.is((await discover(rig, 'memory')).body.resource, `${rig.url}/memory/mcp`);
});

test("[G13] a document that lies elsewhere on the upstream is found by the upstream's own challenge", async (t) => {
  const upstream = await site(t);
  const { origin } = new URL(upstream.url);
  const challenged = (address: string) => (response: ServerResponse) =>
    response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${address}"` }).end();
  upstream.pages.set('/mcp', challenged(`${origin}/about/login.json?v=2`));
  upstream.pages.set('/about/login.json?v=2', json(document));
  const http = new HttpClient({ timeoutMs: 120_000, answerLimit: 65_536 });
  t.teardown(() => http.close());
  const read = () => new DocumentCache(http, () => 0).get(new URL(`${upstream.url}?apiKey=hidden`));
  t.deepEqual(await read(), { kind: 'document', document });
  const places = [`${WELL_KNOWN}/mcp`, WELL_KNOWN, '/mcp', '/about/login.json?v=2'];
  t.deepEqual(
    upstream.asked.map(({ path }) => path),
    places,
  );
  t.false(upstream.asked.some(({ headers }) => 'authorization' in headers || 'mcp-session-id' in headers));

  const basic = 'Basic realm="a, b"';
  const bearer = `Bearer error="invalid_token", resource_metadata="${origin}/about/login.json?v=2"`;
  for (const header of [[basic, bearer], `${basic}, ${bearer}`]) {
    upstream.pages.set('/mcp', (response) => response.writeHead(401, { 'www-authenticate': header }).end());
    t.is((await read()).kind, 'document', String(header));
  }

  const other = await site(t);
  other.pages.set('/', json(document));
  const elsewhere = [
    new URL('/', other.url).href,
    'about/login.json',
    'file:///etc/passwd',
    `blob:${origin}/x`,
  ];
  for (const address of elsewhere) {
    upstream.pages.set('/mcp', challenged(address));
    const answer = await read();
    t.is(answer.kind, 'none', address);
    t.regex(answer.kind === 'none' ? answer.reason : '', /^names one that is not on its own host$/);
  }
  t.deepEqual(other.asked, []);
});

test('[G13] 502 tells an upstream without a document; 404 is the same for unknown servers and those without OAuth', async (t) => {
  const upstream = await site(t);
  const rig = await Rig.start(t, {
    routes: [
      relay({ name: 'memory', url: upstream.url }),
      credentialFree({ name: 'repo_wiki', url: upstream.url }),
    ],
  });
  const none = await discover(rig, 'memory');
  t.is(none.status, 502);
  t.regex(none.body.detail, /serves no protected-resource document: it answers with status 404/);
  const [free, unknown] = [await discover(rig, 'repo_wiki'), await discover(rig, 'nobody')];
  t.is(free.status, 404);
  t.deepEqual(free, unknown);
  t.is((await fetch(`${rig.url}${WELL_KNOWN}/memory`)).status, 404);
  t.is((await fetch(`${rig.url}/memory/mcp${WELL_KNOWN}`)).status, 502, 'another place of the same document');
});

test('[G8,G13] what an upstream leaves unsaid about its login, the entry of its route says', async (t) => {
  const [bare, documented] = [await site(t), await site(t)];
  documented.pages.set(`${WELL_KNOWN}/mcp`, json(document));
  const login = {
    authorizationServers: ['https://login.example.net'],
    scopes: ['notes:read', 'notes:write'],
    scopesInChallenge: true,
  };
  const rig = await Rig.start(t, {
    routes: [
      relay({ name: 'memory', url: bare.url, ...login }),
      relay({ name: 'cluster', url: documented.url, ...login }),
    ],
  });
  t.deepEqual(await discover(rig, 'memory'), {
    status: 200,
    body: {
      resource: `${rig.url}/memory/mcp`,
      authorization_servers: login.authorizationServers,
      scopes_supported: login.scopes,
    },
  });
  t.deepEqual((await discover(rig, 'cluster')).body, { ...document, resource: `${rig.url}/cluster/mcp` });
  const key = await rig.mint({ servers: ['memory'] });
  const challenged = await rig.post('/memory/mcp', initialize, admission(key));
  t.is(
    challenged.headers.get('www-authenticate'),
    `Bearer resource_metadata="${rig.url}${WELL_KNOWN}/memory/mcp", scope="notes:read notes:write"`,
  );
});

test('[G13] what is no document is none: redirects, pages, lists, and what is too large or nested too deep', async (t) => {
  const upstream = await site(t);
  const http = new HttpClient({ timeoutMs: 120_000, answerLimit: 65_536 });
  t.teardown(() => http.close());
  const pages: [string, (response: ServerResponse) => void, RegExp][] = [
    [
      'redirect',
      (response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
      /a redirect/,
    ],
    ['page', (response) => response.writeHead(200).end('<html>'), /not JSON/],
    ['list', json([]), /no object/],
    [
      'script',
      json({ authorization_servers: ['https://id.example', 'javascript:alert(1)'] }),
      /no http\(s\) URL/,
    ],
    ['file', json({ authorization_servers: ['file:///etc/passwd'] }), /no http\(s\) URL/],
    ['text', json({ authorization_servers: 'https://id.example' }), /no http\(s\) URL/],
    ['large', json({ text: 'x'.repeat(70_000) }), /more than 64 KiB/],
    [
      'deep', // it could be read, and not be written again
      (response) => response.writeHead(200).end(`{"a":${'['.repeat(32_000)}${']'.repeat(32_000)}}`),
      /nested deeper than 64 levels/,
    ],
  ];
  for (const [name, page, reason] of pages) {
    upstream.pages.set(`${WELL_KNOWN}/${name}`, page);
    const answer = await new DocumentCache(http, () => 0).get(new URL(`/${name}`, upstream.url));
    t.is(answer.kind, 'none', name);
    t.regex(answer.kind === 'none' ? answer.reason : '', reason);
  }
});

/** What is known of the documents of one upstream, by a clock that stands until it is moved. */
async function documentsOf(t: Parameters<typeof site>[0]) {
  const upstream = await site(t);
  const http = new HttpClient({ timeoutMs: 120_000, answerLimit: 65_536 });
  t.teardown(() => http.close());
  const clock = { now: 0 };
  const documents = new DocumentCache(http, () => clock.now);
  return { upstream, documents, url: new URL(upstream.url), path: `${WELL_KNOWN}/mcp`, clock };
}

test('[G13] a document is kept for minutes, "has none" for half a minute, and neither follows from a failure', async (t) => {
  const { upstream, documents, url, path, clock } = await documentsOf(t);
  const kind = async () => (await documents.get(url)).kind;

  upstream.pages.set(path, (response) => response.writeHead(503).end());
  t.is(await kind(), 'unreachable');
  upstream.pages.delete(path);
  t.is(await kind(), 'unreachable', 'it is not asked again at once');
  clock.now += 1_000;
  // Nobody who does not hear the challenge knows that it names no document.
  for (const silent of [
    (response: ServerResponse) => response.destroy(),
    (response: ServerResponse) => response.writeHead(503).end(),
  ]) {
    upstream.pages.set('/mcp', silent);
    t.is(await kind(), 'unreachable');
    clock.now += 5_000;
  }
  upstream.pages.delete('/mcp');
  t.is(await kind(), 'none');
  upstream.pages.set(path, json(document));
  clock.now += 29_000;
  t.is(await kind(), 'none');
  clock.now += 1_000;
  const before = upstream.asked.length;
  t.deepEqual(await Promise.all([kind(), kind(), kind()]), ['document', 'document', 'document']);
  t.is(upstream.asked.length, before + 1);
  upstream.pages.delete(path);
  clock.now += 299_000;
  t.is(await kind(), 'document');
  clock.now += 1_000;
  t.is(await kind(), 'none');
});

test('[G13,G17] what was known of a document stays while its upstream can not be asked, which is tried again, and told', async (t) => {
  const { upstream, documents, url, path, clock } = await documentsOf(t);
  t.is(documents.status(url), undefined);
  upstream.pages.set(path, json(document));
  t.is((await documents.get(url)).kind, 'document');
  upstream.pages.set(path, (response) => response.writeHead(503).end());
  clock.now += 300_000;
  const known = { last: 'document', trouble: 'answers with status 503' };
  for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const asked = upstream.asked.length;
    t.is((await documents.get(url)).kind, 'document');
    t.deepEqual(documents.status(url), { ...known, ageMs: clock.now } as never);
    t.is(upstream.asked.length, asked + 1);
    clock.now += waitMs - 1;
    await documents.get(url);
    t.is(upstream.asked.length, asked + 1, `${waitMs}`);
    clock.now += 1;
  }
  t.is((await documents.refresh(url)).kind, 'unreachable', 'who asks how it is hears that');
  upstream.pages.set(path, json({ ...document, x_own: 'new' }));
  clock.now += 30_000;
  t.like(await documents.get(url), { document: { x_own: 'new' } });
  t.deepEqual(documents.status(url), { last: 'document', ageMs: 0 });

  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [gateway()] });', [
    `import { gateway } from ${JSON.stringify(new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname)};`,
  ]);
  const rig = await Rig.start(t, {
    probeEveryMs: 20,
    routes: [relay({ name: 'memory', url: upstream.url })],
  });
  const shows = async (text: RegExp) => {
    for (;;) {
      const { out } = await call(['gateway', 'routes', '--data-dir', rig.dataDir], { cwd });
      if (text.test(out)) return t.pass();
    }
  };
  await shows(/healthy/);
  upstream.pages.set(path, (response) => response.writeHead(503).end());
  await shows(/memory .*answers with status 503; its document of \d\d:\d\d:\d\d serves on/);
  t.is((await discover(rig, 'memory')).status, 200);
});
