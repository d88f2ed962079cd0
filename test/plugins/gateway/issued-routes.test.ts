import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { clientCredentials, tokenExchange } from '../../../src/plugins/gateway/index.ts';
import type { RouteInput } from '../../../src/plugins/gateway/routes/entry.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../../support/authorization-server.ts';
import { call, type Finished, writeConfig } from '../../support/cli.ts';
import { startIdentityUpstream } from '../../support/identity.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

const RESOURCE = 'https://tickets.example.net/api';
const GATEWAY = new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname;

interface World {
  readonly rig: Rig;
  readonly issuer: AuthorizationServer;
  readonly key: string;
  /** What the upstream was given, in order. */
  readonly authorizations: (string | undefined)[];
  readonly entry: RouteInput;
  readonly secretFile: string;
}

/** @param secret that the gateway has, in place of the right one */
async function world(
  t: ExecutionContext,
  make: typeof clientCredentials | typeof tokenExchange,
  { secret, more = [] }: { readonly secret?: string; readonly more?: readonly RouteInput[] } = {},
): Promise<World> {
  const issuer = await startAuthorizationServer(t);
  const { url, authorizations } = await startIdentityUpstream(t, issuer.issuer, () => RESOURCE);
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, secret ?? issuer.secret, { mode: 0o600 });
  const { issuer: at, clientId } = issuer;
  const entry = make({ name: 'tickets', url, issuer: at, clientId, secretFile, resource: RESOURCE });
  const rig = await Rig.start(t, { routes: [entry, ...more] });
  const key = await rig.mint({ servers: ['tickets', 'wiki'] });
  return { rig, issuer, key, authorizations, entry, secretFile };
}

/** Runs a command beside the instance. */
function run(t: ExecutionContext, { rig, entry }: World, ...argv: string[]): Promise<Finished> {
  const dir = tempDir(t);
  writeConfig(
    dir,
    `export default defineConfig({ plugins: [gateway({ routes: [${JSON.stringify(entry)}] })] });`,
    [`import { gateway } from ${JSON.stringify(GATEWAY)};`],
  );
  return call(['gateway', ...argv, '--data-dir', rig.dataDir], { cwd: dir, columns: 1_000 });
}

const alertsOf = async (rig: Rig): Promise<{ severity: string; text: string; labels: any }[]> =>
  (await rig.records())
    .flatMap(({ effects }) => effects)
    .map(({ params }) => params as any)
    .filter(({ name }) => name === 'gateway.route_token');

const echo = (text: string) => ({ name: 'tickets-echo', arguments: { text } });
const said = (answer: unknown): string => JSON.stringify(answer);

test('[G7,G19] a client calls a tool by client credentials, and neither token nor secret is left anywhere', async (t) => {
  const { rig, issuer, key, authorizations } = await world(t, clientCredentials);
  const client = await rig.connect(t, 'tickets', key);
  t.regex(said(await client.callTool(echo('hello'))), /hello/);
  t.is(issuer.asked.length, 1);
  const tokens = [...new Set(authorizations)].map((one) => String(one).replace('Bearer ', ''));
  t.is(tokens.length, 1);
  t.deepEqual(await rig.traces(...tokens, issuer.secret, key), []);
});

test('[G2,G7,G17,G22] a client that the authorization server refuses is a state of its route, and over by itself', async (t) => {
  const here = await world(t, clientCredentials, { secret: 'another secret' });
  const { rig, issuer, key, secretFile } = here;
  const answer = await rig.post('/tickets/mcp', initialize, admission(key));
  t.is(answer.status, 503);
  t.regex(
    await answer.text(),
    /The route tickets is without a usable token: its authorization server refuses to issue one \(invalid_client\)\./,
  );
  const alerts = await read(
    'the alert',
    () => alertsOf(rig),
    ({ length }) => length > 0,
  );
  t.like(alerts[0], {
    severity: 'critical',
    labels: { route: 'tickets', state: 'firing', last_good: 'false' },
  });
  t.is(
    alerts[0]?.text,
    `No token is issued for the route tickets: ${issuer.issuer} refuses to issue one (invalid_client). The route answers 503 until there is one; the gateway tries again by itself.`,
  );
  t.deepEqual(await rig.alerts(), ['gateway.route_token'], 'its upstream is not blamed');
  const { out } = await run(t, here, 'routes');
  t.regex(
    out,
    /tickets +client_credentials +token unusable .*no token is issued for it: http.* \(invalid_client\)/,
  );
  const health: any = rig.runtime.health().gateway;
  t.false(health.ok);
  t.regex(health.reason, /route tickets: no token is issued for it/);
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, key, { mode: 0o600 });
  const doctor = await run(t, here, 'doctor', '--key-file', keyFile);
  t.is(doctor.code, 1);
  t.regex(doctor.out, /tickets +sick: no token is issued for it/);
  t.regex(doctor.out, /The authorization server issues no token for the upstream to the gateway/);

  writeFileSync(secretFile, issuer.secret, { mode: 0o600 });
  const ended = await read(
    'the end of the alert',
    () => alertsOf(rig),
    (all) => all.some(({ labels }) => labels.state === 'resolved'),
    200,
  );
  t.is(ended.length, 2);
  t.is((await rig.post('/tickets/mcp', initialize, admission(key))).status, 200);
  t.deepEqual(await rig.traces(issuer.secret, 'another secret'), []);
});

test('[G7,G12] on the aggregate a route without a token is named, and the others answer', async (t) => {
  const wiki = { name: 'wiki', disposition: 'credential_free', url: (await startUpstream(t)).url } as const;
  const { rig, key, issuer, secretFile } = await world(t, clientCredentials, { secret: 'x y', more: [wiki] });
  const client = await rig.connectTo(t, '/mcp/', admission(key));
  const listed = await client.listTools();
  t.deepEqual(
    listed.tools.map(({ name }) => name),
    ['wiki-echo', 'wiki-fail'],
  );
  t.regex(said(listed._meta), /"server":"tickets","reason":"is without a usable token/);
  await t.throwsAsync(client.callTool(echo('x')), { message: /tickets is without a usable token/ });
  writeFileSync(secretFile, issuer.secret, { mode: 0o600 });
  const tools = await read(
    'it is back',
    async () => (await client.listTools()).tools.length,
    (count) => count === 4,
    200,
  );
  t.is(tools, 4);
  t.regex(said(await client.callTool(echo('through'))), /through/);
});

const SUBJECT = 'subject token of';

test('[G8,G12,G19] a caller uses its own token, which is exchanged and reaches no upstream, record or line', async (t) => {
  const { rig, issuer, key, authorizations } = await world(t, tokenExchange);
  const ann = await issuer.login('ann');
  const headers = { ...admission(key), authorization: `Bearer ${ann}` };
  const client = await rig.connectTo(t, '/tickets/mcp', headers);
  t.regex(said(await client.callTool(echo('hello'))), /hello/);
  const merged = await rig.connectTo(t, '/mcp/', headers);
  t.regex(said(await merged.callTool(echo('merged'))), /merged/);
  t.is(issuer.asked.length, 1, 'one exchange for both');
  const tokens = [...new Set(authorizations)].map((one) => String(one).replace('Bearer ', ''));
  t.is(tokens.length, 1);
  t.not(tokens[0], ann);
  t.deepEqual(await rig.traces(...tokens, ann, issuer.secret), []);
});

test('[G8,G13] a caller without a token, or with one that is refused, is led to the login of the issuer', async (t) => {
  const { rig, issuer, key, authorizations } = await world(t, tokenExchange);
  const document = `${rig.url}/.well-known/oauth-protected-resource/tickets/mcp`;
  const none = await rig.post('/tickets/mcp', initialize, admission(key));
  t.is(none.status, 401);
  t.is(none.headers.get('www-authenticate'), `Bearer resource_metadata="${document}"`);
  const headers = { ...admission(key), authorization: `Bearer ${SUBJECT} nobody` };
  const malformed = await rig.post('/tickets/mcp', initialize, headers);
  t.is(malformed.status, 401);
  const refused = await rig.post('/tickets/mcp', initialize, {
    ...admission(key),
    authorization: 'Bearer nobodys-token',
  });
  t.is(refused.status, 401);
  t.is(
    refused.headers.get('www-authenticate'),
    `Bearer error="invalid_token", resource_metadata="${document}"`,
  );
  t.regex(
    await refused.text(),
    /the authorization server of tickets refuses the identity token \(invalid_grant\)/,
  );
  t.deepEqual(await (await fetch(document)).json(), {
    authorization_servers: [issuer.issuer],
    resource: `${rig.url}/tickets/mcp`,
  });
  t.deepEqual(authorizations, [], 'the upstream heard of none of them');
  const ended = (await rig.ended(3)).map(({ outcome, refusal }) => ({ outcome, refusal }));
  t.deepEqual(ended.at(-1), { outcome: 'unreachable', refusal: 'invalid_grant' });
  t.deepEqual(await rig.alerts(), []);
  const merged = await rig.connectTo(t, '/mcp/', {
    ...admission(key),
    authorization: 'Bearer nobodys-token',
  });
  const said = /tickets is without a token for you: its authorization server refuses yours \(invalid_grant\)/;
  await t.throwsAsync(
    merged.callTool(echo('x')),
    { message: said },
    'no challenge, which would end the session',
  );
  t.deepEqual(await rig.traces('nobodys-token'), []);
});

test("[G7,G19] an upstream that repeats the token of the gateway is cut off, and its 403 is the caller's own", async (t) => {
  const issuer = await startAuthorizationServer(t);
  const { clientId, secret } = issuer;
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, secret, { mode: 0o600 });
  let status = 200;
  const { url } = await startScripted(t, (response, heard) => {
    const { authorization = '' } = heard.headers;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(resultFor(heard, { content: [{ type: 'text', text: authorization }] }));
  });
  const common = { url, issuer: issuer.issuer, clientId, secretFile, resource: RESOURCE };
  const routes = [
    clientCredentials({ name: 'tickets', ...common }),
    tokenExchange({ name: 'crm', ...common }),
  ];
  const rig = await Rig.start(t, { routes });
  const key = await rig.mint({ servers: ['tickets', 'crm'] });
  const headers = {
    ...admission(key),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    authorization: `Bearer ${await issuer.login('ann')}`,
  };
  const ask = (server: string) => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const name = `${server}-echo`;
    const call = rpc('tools/call', { name, arguments: {}, _meta });
    return rig.post(`/${server}/mcp`, call, { ...headers, 'mcp-name': name });
  };
  for (const server of ['tickets', 'crm']) {
    const answer = await ask(server);
    t.is(answer.status, 502, server);
    t.regex(await answer.text(), /repeats the credential of the gateway/);
  }
  status = 403;
  t.is((await ask('tickets')).status, 502);
  t.is((await ask('crm')).status, 403);
});

test('[G21] clients log in at a route of token exchange as at any identity route', async (t) => {
  const here = await world(t, tokenExchange);
  const entry = { ...here.entry, callbackPort: 51_340, loginScopes: ['openid'] } as RouteInput;
  const cli = await run(
    t,
    { ...here, entry },
    'client-config',
    '--route',
    'tickets',
    '--url',
    'http://127.0.0.1:4000',
  );
  t.regex(cli.out, /--callback-port 51340 .*tickets http:\/\/127\.0\.0\.1:4000\/tickets\/mcp/);
  const desktop = await run(
    t,
    { ...here, entry },
    'client-config',
    '--client',
    'desktop',
    '--url',
    'http://127.0.0.1:4000',
  );
  t.regex(desktop.err + desktop.out, /tickets is an identity route/);
});

test('[G7,G24] such a route comes back from the log after a restart, with its settings', async (t) => {
  const { rig, issuer, key, entry } = await world(t, clientCredentials);
  await rig.runtime.stop('restart');
  const again = await Rig.start(t, { routes: [{ ...entry, url: 'not a URL' } as RouteInput] }, rig.dataDir);
  const client = await again.connect(t, 'tickets', key);
  t.regex(said(await client.callTool(echo('hello'))), /hello/, 'the last good definition');
  t.is(issuer.asked.length, 1);
});

test('[G17] a route of callers own tokens is probed without one', async (t) => {
  const issuer = await startAuthorizationServer(t);
  const { url, authorizations } = await startIdentityUpstream(t, issuer.issuer, () => RESOURCE);
  const { clientId, secret } = issuer;
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, secret, { mode: 0o600 });
  const entry = tokenExchange({ name: 'tickets', url, issuer: issuer.issuer, clientId, secretFile });
  const rig = await Rig.start(t, { routes: [entry], probeEveryMs: 100 });
  await read(
    'it is healthy',
    () => (rig.runtime.health().gateway as any).upstreams.tickets?.state,
    (state) => state === 'healthy',
  );
  t.true(authorizations.every((one) => one === undefined));
});
