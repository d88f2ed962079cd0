import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { base64url, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { type Clock, systemClock } from '../../../src/core/kernel/clock.ts';
import { asEpochMs, type EpochMs } from '../../../src/core/kernel/ids.ts';
import { relay } from '../../../src/plugins/gateway/index.ts';
import { IdentityGuard } from '../../../src/plugins/gateway/local/identity/identity-guard.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import { startIdentityProvider } from '../../support/identity.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';
import { program } from './stdio-rig.ts';

const HOUR_MS = 3_600_000;

/** The real clock, which a test can set ahead. */
class MovableClock implements Clock {
  aheadMs = 0;
  now = (): EpochMs => asEpochMs(systemClock.now() + this.aheadMs);
  monotonic = (): number => systemClock.monotonic() + this.aheadMs;
  after: Clock['after'] = (ms, run) => systemClock.after(ms, run);
}

/** The memory of this process as an identity route, and a provider whose tokens are for `audience.of`. */
async function open(t: ExecutionContext) {
  const audience = { of: 'mcp-public' };
  const idp = await startIdentityProvider(t, () => audience.of);
  const clock = new MovableClock();
  const rig = await Rig.start(
    t,
    {
      routes: [
        relay({
          name: 'memory',
          audience: 'mcp-public',
          authorizationServers: [idp.issuer],
          scopes: ['groups'],
        }),
      ],
    },
    undefined,
    clock,
    [memoryStore({ port: 0 }), memory({ vectorSize: 4 })],
  );
  const key = await rig.mint({ servers: ['memory'] });
  const begin = (token?: string) =>
    rig.post('/memory/mcp', initialize, {
      ...admission(key),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    });
  return { rig, idp, key, audience, begin, clock };
}

type World = Awaited<ReturnType<typeof open>>;

const metadataOf = ({ rig }: World) =>
  `resource_metadata="${rig.url}/.well-known/oauth-protected-resource/memory/mcp"`;

/** The parts of a token with another header or other claims, and a signature as it was. */
function changed(token: string, header: object, claims: object = {}): string {
  const [head = '', body = '', signature = ''] = token.split('.');
  const parts = [
    { ...decoded(head), ...header },
    { ...decoded(body), ...claims },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return `${parts.join('.')}.${signature}`;
}
const decoded = (part: string): object => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));

test('[G1,G8,G13] where an identity provider is configured, the memory of this process demands its token, and says where to get one', async (t) => {
  const here = await open(t);
  const { rig, idp, begin, key } = here;
  const without = await begin();
  t.is(without.status, 401);
  t.is(without.headers.get('www-authenticate'), `Bearer ${metadataOf(here)}`);
  const document = await fetch(`${rig.url}/.well-known/oauth-protected-resource/memory/mcp`);
  t.deepEqual(await document.json(), {
    resource: `${rig.url}/memory/mcp`,
    authorization_servers: [idp.issuer],
    scopes_supported: ['groups'],
  });

  const token = await idp.token();
  const client = await rig.connectTo(t, '/memory/mcp', {
    ...admission(key),
    authorization: `Bearer ${token}`,
  });
  const stored = await client.callTool({
    name: 'memory-store',
    arguments: { document: 'The key is with ann.' },
  });
  t.falsy(stored.isError);
  t.is((await begin(token)).status, 200);
  t.deepEqual(await rig.traces(token), []);

  // A session is for the subject that began it, also under the same key.
  const begun = await begin(token);
  const session = { ...admission(key), 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const list = async (bearer: string) =>
    (await rig.post('/memory/mcp', rpc('tools/list'), { ...session, authorization: `Bearer ${bearer}` }))
      .status;
  t.is(await list(token), 200);
  t.is(await list(await idp.token()), 404);
  t.is(await list('none'), 401);
});

test('[G8,G26] a token of another audience, issuer, time, signature or kind is refused with its reason, and reaches nothing', async (t) => {
  const here = await open(t);
  const { rig, idp, audience, begin, clock } = here;
  const good = await idp.token();
  audience.of = 'another-service';
  const elsewhere = await idp.token();
  audience.of = 'mcp-public';
  const stranger = await startIdentityProvider(t, () => 'mcp-public');
  const { privateKey } = await generateKeyPair('RS256');
  const forged = (
    header: { alg: string; kid?: string; typ?: string },
    signedWith: Parameters<SignJWT['sign']>[0],
  ) =>
    new SignJWT({ sub: 'eve' })
      .setProtectedHeader(header)
      .setIssuer(idp.issuer)
      .setAudience('mcp-public')
      .setExpirationTime('1h')
      .sign(signedWith);
  const published = (await (await fetch(`${idp.issuer}/jwks`)).json()) as {
    keys: { kid: string; n?: string }[];
  };
  const kid = published.keys.find(({ n }) => n !== undefined)?.kid ?? '';
  const asSecret = base64url.decode(base64url.encode(JSON.stringify(published.keys[0])));
  const cases: readonly (readonly [token: string, reason: RegExp])[] = [
    [elsewhere, /for another audience/],
    [await stranger.token(), /of another issuer/],
    [changed(good, {}, { sub: 'eve' }), /signature is not of its issuer/],
    [changed(good, { alg: 'none' }), /not signed by a key pair/],
    [changed(good, { alg: 'none' }).replace(/[^.]*$/, ''), /not signed by a key pair/],
    [await forged({ alg: 'HS256', kid }, asSecret), /not signed by a key pair/],
    [await forged({ alg: 'RS256', kid }, privateKey), /signature is not of its issuer/],
    [await forged({ alg: 'RS256', kid: 'unknown' }, privateKey), /no such key/],
    [await forged({ alg: 'RS256', kid, typ: 'logout+jwt' }, privateKey), /no access token/],
    [
      changed(good, { jwk: await exportJWK((await generateKeyPair('RS256')).publicKey) }),
      /signature is not of/,
    ],
    ['garbage', /no token that can be checked/],
    ['a.b.c', /no token that can be checked/],
    [`${good}${'A'.repeat(8_000)}`, /too long/],
  ];
  for (const [token, reason] of cases) {
    const answer = await begin(token);
    const challenge = answer.headers.get('www-authenticate') ?? '';
    t.is(answer.status, 401, String(reason));
    t.regex(challenge, /^Bearer error="invalid_token", error_description="/);
    t.true(challenge.endsWith(metadataOf(here)), challenge);
    t.regex(challenge, reason);
  }
  t.is((await begin(good)).status, 200);
  clock.aheadMs = HOUR_MS * 3;
  t.regex((await begin(good)).headers.get('www-authenticate') ?? '', /it has expired/);
  t.deepEqual(await rig.traces(elsewhere, good), []);
});

test('[G8,G26] while the provider is away, its tokens are answered 503 and nothing is open; known keys serve for an hour, and are asked for at a bounded rate', async (t) => {
  const here = await open(t);
  const { idp, begin, clock } = here;
  const token = await idp.token();
  const keysAsked = () => idp.asked.filter((path) => path === '/jwks').length;
  t.is((await begin(token)).status, 200);
  const before = keysAsked();
  const unknown = Array.from({ length: 20 }, (_, number) => changed(token, { kid: `unknown-${number}` }));
  const refused = await Promise.all(unknown.map(begin));
  t.deepEqual([...new Set(refused.map(({ status }) => status))], [401]);
  t.true(keysAsked() - before <= 1, `asked ${keysAsked() - before} times`);
  await idp.close();
  t.is((await begin(token)).status, 200, 'its keys are known');
  clock.aheadMs = 20_000;
  t.is((await begin(unknown[0])).status, 503, 'it may have that key by now: nobody can say');
  clock.aheadMs = HOUR_MS * 1.1;
  const away = await begin(token);
  t.is(away.status, 503);
  t.is(away.headers.get('retry-after'), '10');
  t.regex(await away.text(), /temporarily_unavailable.*cannot be reached/);
});

test('[G8] an identity route of a server on this machine says whose tokens it takes, and for what, or is not served', async (t) => {
  const issuer = 'https://id.example.net';
  const command = program();
  const rig = await Rig.start(t, {
    routes: [
      relay({ name: 'unchecked', command }),
      relay({ name: 'anybody', command, authorizationServers: [issuer] }),
      relay({ name: 'guest', command, authorizationServers: [issuer], audience: '{gateway_url}/guest/mcp' }),
      relay({ name: 'plain', command, authorizationServers: ['http://id.example.net'], audience: 'x' }),
      relay({ name: 'whole', command, authorizationServers: [issuer], audience: 'x' }),
    ],
  });
  const reasons = (rig.runtime.health().gateway as { reason?: string }).reason ?? '';
  t.regex(reasons, /unchecked: its server checks no tokens/);
  t.regex(reasons, /anybody: it lacks an audience/);
  t.regex(reasons, /guest: its audience names \{gateway_url\}: set publicUrl/);
  t.regex(reasons, /plain: the keys of http:\/\/id.example.net would come in plaintext/);
  t.notRegex(reasons, /whole/);
});

test('[G8] a token that names nobody is refused: its session would be that of everybody without a name', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256' }];
  const provider = createServer(({ url }, response) => {
    const body = url === '/jwks' ? { keys } : { issuer, jwks_uri: `${issuer}/jwks` };
    response.end(JSON.stringify(body));
  });
  const issuer = await new Promise<string>((resolve) =>
    provider.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(provider.address() as AddressInfo).port}`),
    ),
  );
  t.teardown(() => {
    provider.closeAllConnections();
    provider.close();
  });
  const { http, clock, logger } = {
    http: new HttpClient({ timeoutMs: PATIENCE_MS, answerLimit: 65_536 }),
    clock: systemClock,
    logger: createLogger({ destination: { write: () => {} } }),
  };
  t.teardown(() => http.close());
  const session = () => new Response(null, { headers: { 'mcp-session-id': 'one' } });
  const server = { fetch: async () => session(), close: async () => {} };
  const rules = { issuers: [issuer], audience: 'here', mayBePlaintext: false };
  const guard = new IdentityGuard(server, rules, { http, clock, logger });
  const ask = async (claims: object) => {
    const signing = new SignJWT({ aud: 'here', iss: issuer, ...claims }).setProtectedHeader({
      alg: 'RS256',
      kid: 'one',
    });
    const authorization = `Bearer ${await signing.setExpirationTime('1h').sign(privateKey)}`;
    return guard.fetch(new Request('http://gateway/mcp', { method: 'POST', headers: { authorization } }));
  };
  for (const claims of [
    {},
    { sub: '' },
    { sub: null },
    { sub: ['ann'] },
    { sub: '', client_id: 'app' },
    { client_id: '' },
  ]) {
    const { status, headers } = await ask(claims);
    t.is(status, 401, JSON.stringify(claims));
    t.regex(headers.get('www-authenticate') ?? '', /it names no subject/);
  }
  t.is((await ask({ sub: 'ann' })).status, 200);
  t.is((await ask({ client_id: 'app' })).status, 200);
});
