import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { inspectClientFile } from '../../../src/plugins/gateway/doctor/client-file.ts';
import { probeRoute } from '../../../src/plugins/gateway/doctor/probe.ts';
import { diagnose } from '../../../src/plugins/gateway/doctor/symptoms.ts';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { routeSchema } from '../../../src/plugins/gateway/routes/entry.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

/** The rows of the documents' error table as clients word them, and the remedy that each must name. */
const symptoms: readonly (readonly [said: string, code: string, remedy: RegExp])[] = [
  ['401 Authentication Error, Malformed API Key passed in.', 'key_without_prefix', /Bearer <virtual_key>/],
  ['HTTP 403 from the gateway', 'key_wrong', /mcp-session-id/],
  ['401 unauthorized', 'key_wrong', /x-gateway-api-key/],
  ['307 Temporary Redirect', 'trailing_slash', /Drop the slash/],
  ['404 on /memory/mcp/sse', 'wrong_sse_path', /\/mcp\/sse/],
  ['404 route not found', 'wrong_url', /\/<server>\/mcp/],
  ['upstream unauthorized while tools/list works', 'key_in_authorization', /rotate it; store the bare token/],
  ['connected but no tools', 'not_entitled', /object_permission/],
  ['Error: User not allowed to call this tool.', 'not_entitled', /object_permission/],
  ['502 on discovery', 'no_document', /asks again within a minute/],
  ['404 on discovery', 'wrong_document_url', /\/\.well-known\/oauth-protected-resource/],
  ['discovery is fine but it never asks for a login', 'no_login', /take Authorization out/],
  ['403 Max 500 clients per realm', 'registration_limit', /reaper/],
  [
    'Incompatible auth server: does not support dynamic client registration',
    'registration_refused',
    /mcp-public/,
  ],
  ['Client not found', 'client_not_found', /Clear the authentication/],
  ['GET /key/info?key=sk-…', 'key_in_query', /rotate the key/],
  ['the proxy fails to load: hyphen in a server name', 'hyphen', /underscores/],
  ['error="invalid_token"', 'wrong_audience', /mcp-public/],
  ['connect ECONNREFUSED 127.0.0.1:4000', 'gateway_down', /holdfast status/],
  ['error="temporarily_unavailable"', 'identity_provider_down', /identity provider/],
  ['404 Session not found', 'session_unknown', /begin another/],
  ['Error: Rate limit of this key exceeded. Try again in 9 s.', 'over_limit', /retry-after/],
  ['Error: Budget of this key exceeded.', 'over_limit', /keys update/],
  ['initialize answers 500', 'upstream_down', /gateway routes/],
  // In the documents' own words.
  ['404 on per-server SSE paths', 'wrong_sse_path', /\/mcp\/sse/],
  ['404 `route not found` on bare `/mcp` from a client entry', 'wrong_url', /\/<server>\/mcp/],
  ['connected but empty `tools/list`, `tools/call` refused', 'not_entitled', /object_permission/],
  ['200 on discovery but no OAuth prompt', 'no_login', /take Authorization out/],
  ['proxy fails to load', 'hyphen', /underscores/],
  [
    '200 + JSON-RPC error with upstream unauthorized text, while `tools/list` works',
    'key_in_authorization',
    /store the bare token/,
  ],
  ['registration refused, 403 with text about max 500 clients per realm', 'registration_limit', /reaper/],
];

for (const [said, code, remedy] of symptoms) {
  test(`[G22] doctor knows the symptom: ${said}`, (t) => {
    const found = diagnose(said);
    t.is(found?.code, code);
    t.regex(found?.remedy ?? '', remedy);
  });
}

test('[G22] what no row describes is not guessed at', (t) => {
  t.is(diagnose('it is slow today'), undefined);
});

const url = 'https://mcp.example.net';
const good = { url: `${url}/memory/mcp`, headers: { 'x-gateway-api-key': 'Bearer sk-secret-value' } };
const bridge = (header: string, value: string, server = 'library_docs') => ({
  command: 'npx',
  args: ['-y', 'mcp-remote', `${url}/${server}/mcp`, '--header', header],
  env: { KEY: value },
});

const entries: readonly (readonly [what: string, entry: object, codes: readonly string[]])[] = [
  ['nothing', good, []],
  [
    'a value without the prefix',
    { ...good, headers: { 'x-gateway-api-key': 'sk-secret' } },
    ['key_without_prefix'],
  ],
  ['a trailing slash', { ...good, url: `${url}/memory/mcp/` }, ['trailing_slash']],
  ['a path of no server', { ...good, url: `${url}/mcp` }, ['wrong_url']],
  ['a hyphen', { ...good, url: `${url}/library-docs/mcp` }, ['hyphen']],
  ['an SSE path', { ...good, url: `${url}/memory/sse` }, ['wrong_sse_path']],
  ['a key in the URL', { ...good, url: `${url}/memory/mcp?key=sk-secret` }, ['key_in_query']],
  [
    'a static Authorization on an identity route',
    { ...good, headers: { ...good.headers, Authorization: 'Bearer sk-secret' } },
    ['no_login'],
  ],
  [
    'a static Authorization elsewhere',
    { url: `${url}/library_docs/mcp`, headers: { ...good.headers, Authorization: 'Bearer sk-secret' } },
    ['key_in_authorization'],
  ],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the bridge's own placeholder
  ['nothing of a bridge', bridge('x-gateway-api-key:${KEY}', 'Bearer sk-secret'), []],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the bridge's own placeholder
  ['a space after the colon', bridge('x-gateway-api-key: ${KEY}', 'Bearer sk-secret'), ['space_after_colon']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the bridge's own placeholder
  ['a bare key in the variable', bridge('x-gateway-api-key:${KEY}', 'sk-secret'), ['key_without_prefix']],
  [
    'an identity route behind the bridge',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the bridge's own placeholder
    bridge('x-gateway-api-key:${KEY}', 'Bearer sk-secret', 'memory'),
    ['bridge_without_login'],
  ],
];

for (const [what, entry, codes] of entries) {
  test(`[G21,G22] an entry is looked through without showing its values: ${what}`, (t) => {
    const found = inspectClientFile({ mcpServers: { mine: entry } }, new Set(['memory']));
    t.deepEqual(
      found.map(({ code }) => code),
      codes,
    );
    t.false(JSON.stringify(found).includes('sk-secret'));
  });
}

test('[G22] entries of projects are looked through too, and a file of something else is no error', (t) => {
  const file = { projects: { '/p': { mcpServers: { theirs: { ...good, url: `${url}/mcp` } } } } };
  t.like(inspectClientFile(file, new Set()), [{ entry: 'theirs', code: 'wrong_url' }]);
  for (const other of [null, 3, [], { mcpServers: [] }, { projects: 3 }]) {
    t.deepEqual(inspectClientFile(other, new Set()), []);
  }
});

test('[G22,G26] an upstream that looks at tokens only when a tool is called does not make a bad one look healthy', async (t) => {
  const upstream = await startUpstream(t);
  const audience = 'mcp-public';
  const rig = await Rig.start(t, { routes: [relay({ name: 'memory', url: upstream.url })] });
  const key = await rig.mint({ servers: ['memory'] });
  const http = new HttpClient({ timeoutMs: 15_000, answerLimit: 4 * 1024 * 1024 });
  t.teardown(() => http.close());
  const jwt = (claims: object) => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
  const probe = (token: string) =>
    probeRoute(routeSchema.parse(relay({ name: 'memory', audience })), {
      ...{ gatewayUrl: rig.url, key, token, http, signal: AbortSignal.timeout(20_000) },
    });
  t.like(await probe(jwt({ aud: audience })), { state: 'healthy' });
  t.like(await probe('opaque'), { state: 'healthy' });
  const expired = await probe(jwt({ aud: audience, exp: 1 }));
  t.like(expired, { state: 'sick', found: 'lists 2 tools, but the token has expired' });
  t.is(expired.diagnosis?.code, 'wrong_audience');
  t.regex((await probe(jwt({ aud: 'else' }))).found, /for else, and the upstream expects mcp-public/);
  t.is((await probe(rig.masterKey)).diagnosis?.code, 'master_key_sent');
  t.is((await probe(key)).diagnosis?.code, 'key_in_authorization');
});

test('[G22] from outside: healthy, not configured, not entitled, wrong key, an upstream that is down, and no gateway', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'repo_wiki', url: upstream.url }),
      credentialFree({ name: 'web_search', url: 'http://127.0.0.1:9/mcp' }),
      credentialFree({ name: 'web_crawl' }),
    ],
  });
  const http = new HttpClient({ timeoutMs: 15_000, answerLimit: 4 * 1024 * 1024 });
  t.teardown(() => http.close());
  const probe = (name: string, key: string, gatewayUrl = rig.url) => {
    const entry = routeSchema.parse(credentialFree({ name }));
    return probeRoute(entry, { gatewayUrl, key, http, signal: AbortSignal.timeout(20_000) });
  };
  const key = await rig.mint({ servers: ['repo_wiki', 'web_search', 'web_crawl'] });
  t.like(await probe('repo_wiki', key), { state: 'healthy', found: '2 tools' });
  t.like(await probe('repo_wiki', await rig.mint({})), {
    state: 'sick',
    diagnosis: { code: 'not_entitled' },
  });
  t.is((await probe('repo_wiki', 'sk-nobody-knows-this-one')).diagnosis?.code, 'key_wrong');
  t.is((await probe('web_search', key)).diagnosis?.code, 'upstream_down');
  t.is((await probe('no_such', key)).diagnosis?.code, 'wrong_url');
  t.deepEqual(await probe('web_crawl', key), {
    route: 'web_crawl',
    state: 'not_configured',
    found: 'set HOLDFAST_MCP_WEB_CRAWL_URL',
  });
  t.is((await probe('repo_wiki', key, 'http://127.0.0.1:9')).diagnosis?.code, 'gateway_down');
});

test('[G22] a route without upstream is not configured, also for a key that does not name it', async (t) => {
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'web_crawl' }), relay({ name: 'memory' })],
  });
  const cwd = tempDir(t);
  writeConfig(
    cwd,
    "export default defineConfig({ plugins: [gateway({ routes: [credentialFree({ name: 'web_crawl' }), relay({ name: 'memory' })] })] });",
    [
      `import { credentialFree, gateway, relay } from ${JSON.stringify(new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname)};`,
    ],
  );
  const keyFile = join(cwd, 'key');
  writeFileSync(keyFile, await rig.mint({}), { mode: 0o600 });
  const doctor = ['gateway', 'doctor', '--key-file', keyFile, '--data-dir', rig.dataDir];
  const { code, out, err } = await call(doctor, { cwd });
  t.is(code, 0, out + err);
  t.regex(out, /^web_crawl +not configured: set HOLDFAST_MCP_WEB_CRAWL_URL$/m);
  t.regex(out, /^memory +not configured: set HOLDFAST_MCP_MEMORY_URL$/m);
});
