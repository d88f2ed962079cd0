import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { upstreamAgent } from '../../../src/plugins/gateway/fast-path/upstream-request.ts';
import { clientCredentials, tokenExchange } from '../../../src/plugins/gateway/index.ts';
import { ISSUER_DEADLINE_MS } from '../../../src/plugins/gateway/issued/token-endpoint.ts';
import { readRouteEntries } from '../../../src/plugins/gateway/routes/entries.ts';
import type { RouteInput } from '../../../src/plugins/gateway/routes/entry.ts';
import { openRoute, type Route } from '../../../src/plugins/gateway/routes/route.ts';
import { askRoute } from '../../../src/plugins/gateway/upstream/request.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../../support/authorization-server.ts';
import { startIdentityUpstream } from '../../support/identity.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { rpc } from './rig.ts';

const RESOURCE = 'https://tickets.example.net/api';
const AN_HOUR = 3_600_000;

interface World {
  readonly issuer: AuthorizationServer;
  readonly clock: VirtualClock;
  readonly route: Route;
  /** What the upstream was given, in order. */
  readonly authorizations: (string | undefined)[];
  /** Sends a `tools/list` to the upstream. @returns the status */
  ask(authorization?: string): Promise<number>;
}

type Make = typeof clientCredentials | typeof tokenExchange;

/** A route to an upstream that verifies its tokens, under a clock that the test moves. */
async function world(t: ExecutionContext, make: Make, more: object = {}, lifetime = 3_600): Promise<World> {
  const issuer = await startAuthorizationServer(t, lifetime);
  const { url, authorizations } = await startIdentityUpstream(t, issuer.issuer, () => RESOURCE);
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, issuer.secret, { mode: 0o600 });
  const entry: RouteInput = make({
    name: 'tickets',
    url,
    issuer: issuer.issuer,
    clientId: issuer.clientId,
    secretFile,
    resource: RESOURCE,
    scopes: ['tickets:read'],
    ...more,
  });
  const clock = new VirtualClock();
  const http = new HttpClient({ timeoutMs: ISSUER_DEADLINE_MS, answerLimit: 65_536, clock });
  const agent = upstreamAgent();
  t.teardown(() => Promise.all([http.close(), agent.destroy()]));
  const { definitions, rejected } = readRouteEntries([entry], {});
  t.deepEqual(rejected, []);
  const [definition] = definitions;
  if (!definition) throw new Error('the entry is not valid');
  const route = await openRoute(definition, {
    env: {},
    store: undefined,
    locals: { open: async () => undefined, close: async () => {} },
    pins: { of: () => undefined },
    issuers: { http, clock },
  });
  t.teardown(() => route.close());
  const message = {
    kind: 'request' as const,
    method: 'tools/list',
    id: 1,
    name: undefined,
    revision: undefined,
    body: { ...rpc('tools/list', {}, 1) },
  };
  const ask = async (authorization?: string) => {
    const headers = { 'mcp-protocol-version': '2025-06-18' };
    const signal = AbortSignal.timeout(60_000);
    const bound = route.forCaller?.(authorization) ?? route;
    const answer = await askRoute(agent, bound, {
      method: 'POST',
      headers,
      message,
      session: undefined,
      key: 'k_test',
      signal,
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  return { issuer, clock, route, authorizations, ask };
}

const claimsOf = (authorization: string | undefined): Record<string, unknown> =>
  JSON.parse(Buffer.from(authorization?.split('.')[1] ?? '', 'base64url').toString('utf8'));

test('[G7] a token is asked for once by many calls, for its resource and scopes, and used until it ends', async (t) => {
  const { issuer, authorizations, clock, ask } = await world(t, clientCredentials);
  const statuses = await Promise.all(Array.from({ length: 20 }, () => ask()));
  t.deepEqual([...new Set(statuses)], [200], 'a real upstream takes it');
  t.is(issuer.asked.length, 1);
  const { parameters, authorization } = issuer.asked[0]!;
  t.deepEqual(Object.fromEntries(parameters), {
    grant_type: 'client_credentials',
    scope: 'tickets:read',
    resource: RESOURCE,
  });
  t.regex(authorization ?? '', /^Basic /);
  t.is(new Set(authorizations).size, 1);
  t.like(claimsOf(authorizations[0]), { aud: RESOURCE, scope: 'tickets:read', client_id: issuer.clientId });

  await clock.advance(AN_HOUR / 2);
  await ask();
  t.is(issuer.asked.length, 1);
});

test('[G7] a token in use is renewed before its end, and no call waits for that', async (t) => {
  const { issuer, clock, authorizations, ask } = await world(t, clientCredentials);
  await ask();
  await ask();
  let answer = () => {};
  issuer.fault = (request, response) => {
    if (request.url !== '/token') return false;
    answer = () => void response.writeHead(500).end();
    return true; // it hangs
  };
  await clock.advance(AN_HOUR - 5 * 60_000);
  await until('the token is renewed', () => issuer.asked.length === 2);
  t.is(await ask(), 200, 'with the one that is there');
  t.is(issuer.asked.length, 2, 'one renewal at a time');
  answer();
  issuer.fault = undefined;
  await until('it is asked for again', async () => {
    await clock.advance(1_000);
    return issuer.asked.length >= 3;
  });
  await until('another one is there', async () => {
    await ask();
    return new Set(authorizations).size === 2;
  });
});

test('[G7] a token that nobody used since it came ends by itself, and the next call gets another one', async (t) => {
  const { issuer, clock, authorizations, ask } = await world(t, clientCredentials);
  await ask();
  await clock.advance(AN_HOUR - 4 * 60_000); // whoever asked for it used it before it came
  await clock.advance(AN_HOUR);
  t.is(issuer.asked.length, 1);
  t.is(await ask(), 200);
  t.is(issuer.asked.length, 2);
  t.is(new Set(authorizations).size, 2);
});

for (const [how, spoil, reason] of [
  [
    'refuses the client',
    (response) =>
      void response
        .writeHead(401, json('Basic'))
        .end('{"error":"invalid_client","error_description":"s3cr3t"}'),
    /^http:\/\/127\.0\.0\.1:\d+ refuses to issue one \(invalid_client\)$/,
  ],
  [
    'answers 500',
    (response) => void response.writeHead(500).end('oops s3cr3t'),
    / answers with what is no token/,
  ],
  [
    'redirects',
    (response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
    / answers with what is no token/,
  ],
  [
    'answers with another kind of token',
    (response) => void response.writeHead(200, json()).end('{"access_token":"s3cr3t","token_type":"mac"}'),
    / answers with what is no token/,
  ],
  [
    'answers with a token that is no header',
    (response) =>
      void response.writeHead(200, json()).end('{"access_token":"s3cr3t\\r\\nx: y","token_type":"Bearer"}'),
    / answers with a token that no header can hold/,
  ],
  [
    'answers without an end',
    (response) => void response.writeHead(200, json()).end(`{"access_token":"${'s3cr3t'.repeat(20_000)}"}`),
    / the answer is larger than 65536 bytes/,
  ],
  ['breaks off', (response) => void response.destroy(), / cannot be asked for it: /],
] as readonly (readonly [string, (response: import('node:http').ServerResponse) => void, RegExp])[]) {
  test(`[G7,G17,G19] an authorization server that ${how} is a state of the route, and asked again by itself`, async (t) => {
    const { issuer, clock, route, ask } = await world(t, clientCredentials);
    let changes = 0;
    route.token?.onChange(() => {
      changes += 1;
    });
    const paths: (string | undefined)[] = [];
    issuer.fault = (request, response) => {
      paths.push(request.url);
      if (request.url !== '/token') return false;
      spoil(response);
      return true;
    };
    const error = await t.throwsAsync(ask());
    t.regex(error?.message ?? '', /without a usable token: its authorization server /);
    t.regex(route.token?.problem?.reason ?? '', reason);
    t.like(route.token?.problem, { lastGood: false, issued: true });
    t.regex(route.reason ?? '', /^without a usable token: its authorization server /);
    t.false(/s3cr3t|127\.0\.0\.1/.test(`${error?.message} ${route.reason}`));
    t.false(paths.includes('/elsewhere'));
    t.is(changes, 1);
    await t.throwsAsync(ask());
    t.is(issuer.asked.length, 1, 'not for each call');

    issuer.fault = undefined;
    await until('it is there again', async () => {
      await clock.advance(1_000);
      return route.token?.problem === undefined;
    });
    t.is(route.reason, undefined);
    t.is(await ask(), 200);
  });
}

test('[G7,G23] an authorization server that hangs costs a call one deadline, and those behind it nothing', async (t) => {
  const { issuer, clock, route, ask } = await world(t, clientCredentials);
  issuer.fault = ({ url }) => url === '/token';
  const first = t.throwsAsync(ask());
  const second = t.throwsAsync(ask());
  await until('it is asked', () => issuer.asked.length === 1);
  await clock.advance(ISSUER_DEADLINE_MS);
  t.regex((await first)?.message ?? '', /does not answer in time/);
  await second;
  t.regex(route.token?.problem?.reason ?? '', /cannot be asked for it: nothing came within 10 s/);
  await t.throwsAsync(ask());
  t.is(issuer.asked.length, 1);
});

test('[G7] while the server fails the last token goes on until it ends, and the reason says when', async (t) => {
  const { issuer, clock, route, ask } = await world(t, clientCredentials);
  await ask();
  await ask();
  issuer.fault = ({ url }, response) => {
    if (url !== '/token') return false;
    response.writeHead(503).end();
    return true;
  };
  await clock.advance(AN_HOUR - 4 * 60_000);
  await until('the renewal has failed', () => route.token?.problem);
  t.like(route.token?.problem, { lastGood: true, issued: true });
  const left = (route.token?.problem?.endsAt ?? 0) - clock.now();
  t.true(left > 3 * 60_000 && left < 4 * 60_000, String(left));
  t.is(route.reason, undefined);
  t.is(await ask(), 200);
  await clock.advance(4 * 60_000);
  t.like(route.token?.problem, { lastGood: false });
  t.regex(route.reason ?? '', /without a usable token/);
  const times = issuer.asked.length;
  t.true(times < 20, `${times} requests in four minutes`);
});

test('[G7] a token that the upstream no longer takes is replaced behind the call, which succeeds', async (t) => {
  const { issuer, authorizations, ask } = await world(t, clientCredentials);
  issuer.fault = ({ url }, response) => {
    if (url !== '/token' || issuer.asked.length > 1) return false;
    response.writeHead(200, json()).end('{"access_token":"revoked","token_type":"Bearer","expires_in":3600}');
    return true;
  };
  t.deepEqual(await Promise.all([ask(), ask(), ask()]), [200, 200, 200]);
  t.is(issuer.asked.length, 2, 'once for all of them');
  t.is(authorizations.filter((one) => one === 'Bearer revoked').length, 3);
  t.is(authorizations.length, 6);
});

test('[G7] an upstream that refuses each token gets one more in half a minute, and its issuer no flood', async (t) => {
  const { issuer, clock, authorizations, ask } = await world(t, clientCredentials, {
    resource: 'https://another.example.net/',
  });
  t.is(await ask(), 401);
  t.is(authorizations.length, 2, 'a second time with another one');
  t.is(new Set(authorizations).size, 2);
  t.is(await ask(), 401);
  t.is(issuer.asked.length, 2);
  await clock.advance(30_000);
  t.is(await ask(), 401);
  t.is(issuer.asked.length, 3);
});

test('[G8] each caller has a token of its own, exchanged once for what the caller brought', async (t) => {
  const { issuer, authorizations, ask, clock } = await world(t, tokenExchange);
  const [ann, bob] = [await issuer.login('ann'), await issuer.login('bob')];
  await Promise.all([ask(`Bearer ${ann}`), ask(`Bearer ${ann}`), ask(`Bearer ${bob}`), ask(`bearer ${bob}`)]);
  t.is(issuer.asked.length, 2);
  t.like(Object.fromEntries(issuer.asked[0]!.parameters), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: ann,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    resource: RESOURCE,
    scope: 'tickets:read',
  });
  t.deepEqual(authorizations.map((one) => claimsOf(one).sub).toSorted(), ['ann', 'ann', 'bob', 'bob']);
  t.deepEqual([await ask(`Bearer ${ann}`), await ask(`Bearer ${bob}`)], [200, 200]);
  t.is(issuer.asked.length, 2, 'each is kept');
  t.false(
    authorizations.some((one) => one?.includes(ann) || one?.includes(bob)),
    'nobody passes its own on',
  );
  await clock.advance(AN_HOUR);
  t.is(await ask(`Bearer ${ann}`), 200);
  t.is(issuer.asked.length, 3);
});

test('[G8] a refused caller is told so, is not asked for again and again, and is no fault of the route', async (t) => {
  const { issuer, route, ask, authorizations } = await world(t, tokenExchange);
  for (const authorization of ['Bearer no-such-token', 'Bearer no-such-token', 'Basic YTpi', undefined]) {
    const fault = await route.forCaller?.(authorization).issued?.prepare();
    t.is(fault?.of, 'caller', authorization);
  }
  t.is(issuer.asked.length, 1);
  t.is(route.token?.problem, undefined);
  t.is(route.reason, undefined);
  t.is(await ask(`Bearer ${await issuer.login('ann')}`), 200);
  t.is(authorizations.length, 1, 'the upstream never heard of the others');
});

test('[G8] callers are bounded: strangers push nobody out who has a token', async (t) => {
  const { issuer, ask, route } = await world(t, tokenExchange);
  const ann = `Bearer ${await issuer.login('ann')}`;
  await ask(ann);
  issuer.fault = ({ url }, response) => {
    if (url !== '/token') return false;
    response.writeHead(400, json()).end('{"error":"invalid_grant"}');
    return true;
  };
  const faults = await Promise.all(
    Array.from({ length: 1_200 }, (_, index) =>
      route.forCaller?.(`Bearer stranger-${index}`).issued?.prepare(),
    ),
  );
  t.is(faults.filter((fault) => fault?.of === 'caller').length, 64, 'so many exchanges run at once');
  t.is(faults.filter((fault) => fault?.of === 'busy').length, 1_136);
  t.is(issuer.asked.length, 65);
  t.is(await ask(ann), 200);
  t.is(issuer.asked.length, 65);
});

test("[G8] what a caller's token was exchanged for ends with it", async (t) => {
  const { issuer, clock, route } = await world(t, tokenExchange);
  issuer.fault = ({ url }, response) => {
    if (url !== '/token') return false;
    response
      .writeHead(200, json())
      .end(`{"access_token":"t${issuer.asked.length}","token_type":"Bearer","expires_in":3600}`);
    return true;
  };
  const exp = Math.floor(clock.now() / 1_000) + 60;
  const subject = `x.${Buffer.from(JSON.stringify({ sub: 'ann', exp })).toString('base64url')}.x`;
  const bound = route.forCaller?.(`Bearer ${subject}`);
  await bound?.issued?.prepare();
  t.is(bound?.issued?.value, 't1');
  await clock.advance(70_000);
  await bound?.issued?.prepare();
  t.is(bound?.issued?.value, 't2');
});

for (const [what, entry, said] of [
  ['names no server', {}, /issuer: neither it nor tokenEndpoint is set/],
  ['names two', { issuer: 'https://a.example', tokenEndpoint: 'https://a.example/t' }, /keep one of the two/],
  [
    'sends the secret over http',
    { issuer: 'http://a.example' },
    /the client's secret would go to a\.example in plaintext/,
  ],
  [
    'has a user in a URL',
    { tokenEndpoint: 'https://u:p@a.example/t' },
    /tokenEndpoint: it contains a user or password/,
  ],
  [
    'has two secrets',
    { issuer: 'https://a.example', secret: 'a/b#c', secretFile: '/x' },
    /secret: secretFile is set as well/,
  ],
] as const) {
  test(`[G2,G7] an entry that ${what} is refused, with the reason`, (t) => {
    const inputs = [
      clientCredentials({ name: 'tickets', url: 'https://t.example', clientId: 'gateway', ...entry }),
    ];
    const { definitions, rejected } = readRouteEntries(inputs, {});
    t.deepEqual(definitions, []);
    t.regex(rejected[0]?.reason ?? '', said);
  });
}

test('[G2,G7] the client secret is a file, a variable or a place of the store, and a route without one says so', async (t) => {
  const entry = {
    name: 'tickets',
    issuer: 'https://a.example',
    clientId: 'gateway',
    url: 'https://t.example',
  };
  const sourceOf = (more: object, env = {}) =>
    readRouteEntries([clientCredentials({ ...entry, ...more })], env).definitions[0]?.secret;
  t.is(sourceOf({ secretFile: '/run/secret' }), 'file:/run/secret');
  t.is(sourceOf({ secret: 'mcp/tickets#secret' }), 'store:mcp/tickets#secret');
  t.is(sourceOf({}, { HOLDFAST_MCP_TICKETS_CLIENT_SECRET: 'x' }), 'env:HOLDFAST_MCP_TICKETS_CLIENT_SECRET');
  t.is(
    sourceOf({}, { HOLDFAST_MCP_TICKETS_CLIENT_SECRET_FILE: '/y', HOLDFAST_MCP_TICKETS_TOKEN: 'z' }),
    'file:/y',
  );
  t.is(sourceOf({}, { HOLDFAST_MCP_TICKETS_TOKEN: 'z' }), undefined);
  const missing = await world(t, clientCredentials, { secretFile: join(tempDir(t), 'none') });
  t.regex(missing.route.reason ?? '', /^without its client secret, which its file does not provide$/);
});

function json(challenge?: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(challenge !== undefined && { 'www-authenticate': `${challenge} realm="test"` }),
  };
}
