import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { probeRoute } from '../../../src/plugins/gateway/doctor/probe.ts';
import { relay } from '../../../src/plugins/gateway/index.ts';
import { routeSchema } from '../../../src/plugins/gateway/routes/entry.ts';
import { describeGatewayRecord } from '../../../src/plugins/gateway/words.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import {
  type IdentityProvider,
  startIdentityProvider,
  startIdentityUpstream,
} from '../../support/identity.ts';
import { admission, initialize, Rig } from './rig.ts';

/** A client that has never been here: it registers itself, and remembers what it is told. */
function newcomer(signIn: IdentityProvider['signIn']) {
  const memory: { client?: unknown; tokens?: unknown; verifier?: string; code?: Promise<string> } = {};
  const provider = {
    redirectUrl: 'http://127.0.0.1:51338/callback',
    clientMetadata: {
      client_name: 'cli',
      redirect_uris: ['http://127.0.0.1:51338/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => memory.client,
    saveClientInformation(client: unknown) {
      memory.client = client;
    },
    tokens: () => memory.tokens,
    saveTokens(tokens: unknown) {
      memory.tokens = tokens;
    },
    codeVerifier: () => memory.verifier ?? '',
    saveCodeVerifier(verifier: string) {
      memory.verifier = verifier;
    },
    redirectToAuthorization(url: URL) {
      memory.code = signIn(url);
    },
  };
  return { memory, provider };
}

interface World {
  readonly rig: Rig;
  readonly idp: IdentityProvider;
  readonly key: string;
  readonly authorizations: (string | undefined)[];
}

/** The `cluster` route as it is shipped: tokens are for the URL of the route itself, with the scopes of its document. */
async function cluster(t: ExecutionContext<unknown>) {
  let audience = '';
  const idp = await startIdentityProvider(t, (resource) => resource);
  const { url, authorizations } = await startIdentityUpstream(t, idp.issuer, () => audience);
  const entry = relay({
    name: 'cluster',
    url,
    audience: '{gateway_url}/cluster/mcp',
    scopes: ['mcp-cluster', 'groups', 'offline_access'],
  });
  const rig = await Rig.start(t, { routes: [entry] });
  audience = `${rig.url}/cluster/mcp`;
  return { rig, idp, key: await rig.mint({ servers: ['cluster'] }), authorizations, audience };
}

/** @param audience that tokens bear; the upstream wants `mcp-public` */
async function world(t: ExecutionContext<unknown>, audience = 'mcp-public'): Promise<World> {
  const idp = await startIdentityProvider(t, () => audience);
  const { url, authorizations } = await startIdentityUpstream(t, idp.issuer, () => 'mcp-public');
  const rig = await Rig.start(t, { routes: [relay({ name: 'memory', url, audience: 'mcp-public' })] });
  return { rig, idp, key: await rig.mint({ servers: ['memory'] }), authorizations };
}

async function signedIn({ rig, idp, key }: World, server = 'memory') {
  const asked: URL[] = [];
  const { memory, provider } = newcomer((url) => {
    asked.push(url);
    return idp.signIn(url);
  });
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(`${rig.url}/${server}/mcp`), {
      authProvider: provider as never,
      requestInit: { headers: admission(key) },
    });
  const first = transport();
  const error = await new Client({ name: 'cli', version: '1' })
    .connect(first as never)
    .catch((e: unknown) => e);
  await first.finishAuth((await memory.code) ?? '');
  return { error, memory, transport, asked };
}

const claimsOf = (token: string): Record<string, any> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));

test('[G8,G13,G20,G26] a new client logs in at cluster: with its scopes, for an audience of its own, to its call', async (t) => {
  const here = await cluster(t);
  const { error, memory, transport, asked } = await signedIn(here, 'cluster');
  t.true(error instanceof UnauthorizedError);
  t.is(asked[0]?.searchParams.get('resource'), here.audience);
  t.deepEqual(asked[0]?.searchParams.get('scope')?.split(' ').toSorted(), [
    'groups',
    'mcp-cluster',
    'offline_access',
  ]);
  const client = new Client({ name: 'cli', version: '1' });
  await client.connect(transport() as never);
  t.teardown(() => client.close());
  const answer = await client.callTool({ name: 'cluster-echo', arguments: { text: 'hello' } });
  t.deepEqual(answer.content, [{ type: 'text', text: 'hello' }]);
  const token = tokenOf(memory);
  t.is(claimsOf(token).aud, here.audience);
  t.deepEqual(claimsOf(token).scope.split(' ').toSorted(), ['groups', 'mcp-cluster']);
  t.is(here.authorizations.at(-1), `Bearer ${token}`, 'relayed verbatim');
  t.false(JSON.stringify(await here.rig.records()).includes(token));

  const entry = routeSchema.parse({
    name: 'cluster',
    disposition: 'relay',
    audience: '{gateway_url}/cluster/mcp',
  });
  t.like(await probe(here.rig, here.key, token, entry), { state: 'healthy' });
  const memoryToken = tokenOf((await signedIn(await world(t))).memory);
  const found = await probe(here.rig, here.key, memoryToken, entry);
  t.is(found.diagnosis?.code, 'wrong_audience');
  t.true(found.found.includes(`for mcp-public, and the upstream expects ${here.audience}`), found.found);
});

test('[G8,G13,G20] a new client goes from the challenge over discovery, registration and PKCE to its call', async (t) => {
  const here = await world(t);
  const { error, memory, transport } = await signedIn(here);
  t.true(error instanceof UnauthorizedError);
  const client = new Client({ name: 'cli', version: '1' });
  await client.connect(transport() as never);
  t.teardown(() => client.close());
  const answer = await client.callTool({ name: 'memory-echo', arguments: { text: 'hello' } });
  t.deepEqual(answer.content, [{ type: 'text', text: 'hello' }]);
  const { access_token } = memory.tokens as { access_token: string };
  t.is(here.authorizations.at(-1), `Bearer ${access_token}`, 'relayed verbatim');
  const records = JSON.stringify(await here.rig.records());
  t.false(records.includes(access_token));
});

test('[G8,G13,G20] a new client logs in at the memory of this process, up to its call, and its token goes nowhere', async (t) => {
  const idp = await startIdentityProvider(t, () => 'mcp-public');
  const route = relay({
    name: 'memory',
    audience: 'mcp-public',
    scopes: ['mcp-cluster', 'groups', 'offline_access'],
    authorizationServers: [idp.issuer],
  });
  const others = [memoryStore({ port: 0 }), memory({ vectorSize: 4 })];
  const rig = await Rig.start(t, { routes: [route] }, undefined, undefined, others);
  const here = { rig, idp, key: await rig.mint({ servers: ['memory'] }), authorizations: [] };
  const { error, memory: remembered, transport } = await signedIn(here);
  t.true(error instanceof UnauthorizedError);
  const client = new Client({ name: 'cli', version: '1' });
  await client.connect(transport() as never);
  t.teardown(() => client.close());
  const answer = await client.callTool({ name: 'memory-store', arguments: { document: 'hello' } });
  t.falsy(answer.isError);
  t.is(((await client.callTool({ name: 'memory-list' })).structuredContent as { total: number }).total, 1);
  t.deepEqual(await rig.traces(tokenOf(remembered)), []);
});

test('[G8] without a token the challenge names our own document; without a key there is no challenge', async (t) => {
  const { rig, key } = await world(t);
  const challenged = await rig.post('/memory/mcp', initialize, admission(key));
  t.is(challenged.status, 401);
  t.is(
    challenged.headers.get('www-authenticate'),
    `Bearer resource_metadata="${rig.url}/.well-known/oauth-protected-resource/memory/mcp"`,
  );
  t.is((await rig.post('/memory/mcp', initialize)).headers.get('www-authenticate'), null);
});

const memoryEntry = routeSchema.parse({ name: 'memory', disposition: 'relay', audience: 'mcp-public' });

async function probe(rig: Rig, key: string, token?: string, entry = memoryEntry) {
  const http = new HttpClient({ timeoutMs: 15_000, answerLimit: 4 * 1024 * 1024 });
  try {
    const signal = AbortSignal.timeout(20_000);
    return await probeRoute(entry, { gatewayUrl: rig.url, key, token, http, signal });
  } finally {
    await http.close();
  }
}

const tokenOf = (memory: { tokens?: unknown }) => (memory.tokens as { access_token: string }).access_token;

/** What the log says of tokens that the upstream refused. */
async function refusals(rig: Rig): Promise<string[]> {
  const said = (await rig.records()).map((record) => describeGatewayRecord(record as never) ?? '');
  return said
    .filter((text) => text.startsWith('http_error'))
    .map((text) => text.replace(/ in [\d.]+ ms$/, ''));
}

test('[G22,G26] doctor tells a wrong audience from an identity provider that is away, and both from health', async (t) => {
  const right = await world(t);
  t.like(await probe(right.rig, right.key), {
    state: 'login_needed',
    found: `clients log in at ${right.idp.issuer}`,
  });
  const { memory } = await signedIn(right);
  t.like(await probe(right.rig, right.key, tokenOf(memory)), { state: 'healthy', found: '2 tools' });

  const wrong = await world(t, 'somebody-else');
  const other = await signedIn(wrong);
  const found = await probe(wrong.rig, wrong.key, tokenOf(other.memory));
  t.is(found.diagnosis?.code, 'wrong_audience');
  t.regex(found.found, /for somebody-else, and the upstream expects mcp-public/);
  t.false(JSON.stringify(found).includes(tokenOf(other.memory)));
  t.deepEqual(await refusals(wrong.rig), ['http_error 401 (invalid_token)']);
});

test('[G26] an identity provider that is away is not the fault of the token', async (t) => {
  const here = await world(t);
  const { memory } = await signedIn(here);
  await here.idp.close();
  const found = await probe(here.rig, here.key, tokenOf(memory));
  t.is(found.diagnosis?.code, 'identity_provider_down');
  t.deepEqual(await refusals(here.rig), ['http_error 401 (temporarily_unavailable)']);
});
