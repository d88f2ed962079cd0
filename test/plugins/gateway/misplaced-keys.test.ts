import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { credentialFree, overwrite, relay } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { send } from './raw.ts';
import { initialize, Rig, rpc } from './rig.ts';

// Neither looks like a key, so that no redactor could hide that one of them got out.
const VIRTUAL = 'virtual.value.of.ann.4711';
const MASTER = 'master.value.of.nobody.0815';
const TOKEN = 'identity.token.of.ann';
const basic = (value: string) => `Basic ${Buffer.from(`ann:${value}`).toString('base64')}`;

const KEY_HEADERS = {
  nothing: undefined,
  'a virtual key': `Bearer ${VIRTUAL}`,
  'a virtual key without its prefix': VIRTUAL,
  'a virtual key as Basic': basic(VIRTUAL),
  'an unknown key': 'Bearer nobody.knows.this.one',
  'the master key': `Bearer ${MASTER}`,
  'the master key without its prefix': MASTER,
} as const;
const AUTHORIZATIONS = {
  nothing: undefined,
  'an identity token': `Bearer ${TOKEN}`,
  'a virtual key': `Bearer ${VIRTUAL}`,
  'a virtual key without its prefix': VIRTUAL,
  'a virtual key as Basic': basic(VIRTUAL),
  'a virtual key behind a token': `Bearer ${TOKEN}, Bearer ${VIRTUAL}`,
  'the master key': `Bearer ${MASTER}`,
  'the master key as Basic': basic(MASTER),
} as const;
const ROUTES = ['columnar_ro', 'memory', 'repo_wiki'] as const;

/** A file that only its owner may read. */
function secretFile(t: ExecutionContext, value: string): string {
  const file = join(tempDir(t), 'secret');
  writeFileSync(file, value, { mode: 0o600 });
  return file;
}

type KeyHeader = keyof typeof KEY_HEADERS;
type Authorization = keyof typeof AUTHORIZATIONS;

/** What the contract says of a combination: status, and whether somebody should hear of it. */
function expected(route: string, keyHeader: KeyHeader, authorization: Authorization) {
  const found = authorization.includes('master')
    ? 'master'
    : authorization.includes('virtual')
      ? 'virtual'
      : undefined;
  if (keyHeader !== 'a virtual key') {
    return { status: 401, alert: found !== undefined || keyHeader.includes('master') };
  }
  const relays = route === 'memory';
  const refused = found === 'master' || (relays && (found === 'virtual' || authorization === 'nothing'));
  return { status: refused ? 401 : 200, alert: found !== undefined };
}

test('[G3,G9,G25,G19] every combination of headers: what is refused, what is told, and that no key gets anywhere', async (t) => {
  const upstream = await startUpstream(t, true);
  const masterKeyFile = secretFile(t, MASTER);
  const tokenFile = secretFile(t, 'token.of.the.gateway');
  const { url } = upstream;
  const rig = await Rig.start(t, {
    masterKeyFile,
    routes: [
      overwrite({ name: 'columnar_ro', url, tokenFile }),
      relay({ name: 'memory', url }),
      credentialFree({ name: 'repo_wiki', url }),
    ],
  });
  await rig.mint({ servers: [...ROUTES] }, VIRTUAL);

  const stories: { what: string; alert: boolean; correlation: string | null }[] = [];
  for (const route of ROUTES) {
    for (const keyHeader of Object.keys(KEY_HEADERS) as KeyHeader[]) {
      for (const authorization of Object.keys(AUTHORIZATIONS) as Authorization[]) {
        const what = `${route}: ${keyHeader} in the key header, ${authorization} in Authorization`;
        const asked = upstream.asked.length;
        const answer = await rig.post(`/${route}/mcp`, initialize, {
          ...(KEY_HEADERS[keyHeader] && { 'x-gateway-api-key': KEY_HEADERS[keyHeader] }),
          ...(AUTHORIZATIONS[authorization] && { authorization: AUTHORIZATIONS[authorization] }),
        });
        const body = await answer.text();
        const { status, alert } = expected(route, keyHeader, authorization);
        t.is(answer.status, status, what);
        t.is(upstream.asked.length - asked, status === 200 ? 1 : 0, what);
        t.notRegex(body + JSON.stringify([...answer.headers]), new RegExp(`${VIRTUAL}|${MASTER}`), what);
        if (keyHeader.includes('without its prefix')) t.regex(body, /Malformed API Key passed in/);
        if (status === 200) {
          const sent = upstream.asked.at(-1)?.headers.authorization;
          const wanted = {
            columnar_ro: 'Bearer token.of.the.gateway',
            memory: `Bearer ${TOKEN}`,
            repo_wiki: undefined,
          };
          t.is(sent, wanted[route], what);
        }
        stories.push({ what, alert, correlation: answer.headers.get('x-correlation-id') });
      }
    }
  }

  const decisions = (await rig.records()).filter(({ event }) => /^(?:CALL|REJECTED)$/.test(event.type));
  t.is(decisions.length, stories.length, 'each is decided once');
  for (const { what, alert, correlation } of stories) {
    const decision = decisions.find((record) => record.correlation === correlation);
    const facts = (decision?.event ?? {}) as { rule?: string; misplaced?: string; authorization?: string };
    const { rule, misplaced, authorization = 'bearer' } = facts;
    const told = authorization !== 'bearer';
    const grave = rule === 'master_key_presented' || rule === 'key_only_in_authorization';
    t.is(told || grave || misplaced !== undefined, alert, what);
  }
  const alerts = new Set(await rig.alerts());
  t.deepEqual([...alerts].sort(), [
    'gateway.key_misplaced',
    'gateway.key_only_in_authorization',
    'gateway.master_key_presented',
  ]);
  const secrets = [VIRTUAL, MASTER, TOKEN, basic(VIRTUAL).slice(6), basic(MASTER).slice(6)];
  t.deepEqual(await rig.traces(...secrets), []);
  const received = JSON.stringify(upstream.asked);
  for (const secret of secrets) if (secret !== TOKEN) t.false(received.includes(secret));
  t.false(received.includes('x-gateway-api-key'));
});

/** Every sign of it percent-encoded, so that not even a part of it is to be read. */
const encoded = (value: string): string =>
  value.replace(/./g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

const PLACES: Readonly<Record<string, (value: string) => Record<string, string>>> = {
  'header x-api-key': (value) => ({ 'x-api-key': value }),
  'header user-agent': (value) => ({ 'user-agent': `curl/8 (${value} )` }),
  'header tracestate': (value) => ({ tracestate: `vendor=${value}` }),
  'header mcp-param-who': (value) => ({ 'mcp-param-who': value }),
  'header cookie': (value) => ({ cookie: `a=b; key=${value}` }),
  'header forwarded': (value) => ({ forwarded: `for=x;by="${value}"` }),
  'header referer': (value) => ({
    referer: `https://a.example/?x=%zz&next=${encodeURIComponent(`/?k=${encoded(value)}`)}`,
  }),
  'a header': (value) => ({ 'x-the-name-is-as-long-as-a-key': `Bearer ${value}` }),
  query: () => ({}),
};

test('[G9,G25] a key in any other header or in the URL is told once a minute, and passed on in none of them', async (t) => {
  const upstream = await startUpstream(t, true);
  const masterKeyFile = secretFile(t, MASTER);
  const { url } = upstream;
  const routes = [credentialFree({ name: 'repo_wiki', url }), relay({ name: 'memory', url })];
  const rig = await Rig.start(t, { masterKeyFile, routes });
  await rig.mint({ servers: ['repo_wiki', 'memory'] }, VIRTUAL);
  const good = { 'x-gateway-api-key': `Bearer ${VIRTUAL}` };
  const token = { authorization: `Bearer ${TOKEN}` };
  for (const [where, headers] of Object.entries(PLACES)) {
    for (const value of [VIRTUAL, MASTER]) {
      for (const route of ['repo_wiki', 'memory']) {
        const heard = upstream.asked.length;
        const path = `/${route}/mcp${where === 'query' ? `?a=%&key=${encoded(value)}` : ''}`;
        const answer = await rig.post(path, initialize, { ...good, ...token, ...headers(value) });
        await answer.text();
        t.is(answer.status, value === MASTER ? 401 : 200, `${where} ${route}`);
        t.is(upstream.asked.length - heard, value === MASTER ? 0 : 1);
        const stranger = await rig.post(path, initialize, { ...token, ...headers(value) });
        await stranger.text();
        t.is(stranger.status, 401);
        const [known, unknown] = (await rig.records()).filter(({ correlation, event }) => {
          const asked = [answer, stranger].map((one) => one.headers.get('x-correlation-id'));
          return asked.includes(correlation) && /^(?:CALL|REJECTED)$/.test(event.type);
        });
        const key = value === MASTER ? 'master_key' : 'virtual_key';
        t.like(known?.event, { misplaced: { key, where } });
        t.like(unknown?.event, { misplaced: key, where });
      }
    }
  }
  t.deepEqual((await rig.alerts()).sort(), [
    'gateway.key_in_query',
    'gateway.key_misplaced',
    'gateway.key_misplaced',
    'gateway.master_key_presented',
  ]);
  for (const path of [`/repo_wiki/${VIRTUAL}/mcp`, `/${encoded(VIRTUAL)}/mcp`, `/nowhere?x=${VIRTUAL}`]) {
    t.is((await rig.post(path, initialize, good)).status, 404);
  }
  for (;;) {
    const looked = (await rig.records()).filter(({ event }) => (event as any).rule === 'key_in_query');
    if (looked.length === 3) break;
  }
  const received = JSON.stringify(upstream.asked);
  const shapes = [VIRTUAL, MASTER].flatMap((value) => [
    value,
    encoded(value),
    encodeURIComponent(encoded(value)),
  ]);
  for (const secret of shapes) t.false(received.includes(secret));
  t.deepEqual(await rig.traces(...shapes, TOKEN), []);
});

test('[G9,G25] a key in the place of a session id is told and not passed on; a session id of ours is no key', async (t) => {
  const upstream = await startUpstream(t, true);
  const routes = [credentialFree({ name: 'repo_wiki', url: upstream.url })];
  const rig = await Rig.start(t, { masterKeyFile: secretFile(t, MASTER), routes });
  await rig.mint({ servers: ['repo_wiki'] }, VIRTUAL);
  const ask = async (session: string) => {
    const headers = { 'x-gateway-api-key': `Bearer ${VIRTUAL}`, 'mcp-session-id': session };
    const { headers: answered } = await rig.post('/repo_wiki/mcp', rpc('tools/list'), headers);
    const records = await rig.records();
    return records.find(
      ({ correlation, event }) =>
        correlation === answered.get('x-correlation-id') && /^(?:CALL|REJECTED)$/.test(event.type),
    )?.event;
  };
  const where = 'header mcp-session-id';
  t.like(await ask(VIRTUAL), { misplaced: { key: 'virtual_key', where } });
  t.like(await ask(MASTER), { misplaced: { key: 'master_key', where } });
  const opened = await rig.post('/repo_wiki/mcp', initialize, { 'x-gateway-api-key': `Bearer ${VIRTUAL}` });
  const session = opened.headers.get('mcp-session-id') ?? '';
  t.true(session.length > 20);
  t.false('misplaced' in ((await ask(session)) ?? {}));
  t.notRegex(JSON.stringify(upstream.asked), new RegExp(`${VIRTUAL}|${MASTER}`));
});

test('[G9,G25] a key where none belongs is told also of a request that breaks the protocol, and of a route without upstream', async (t) => {
  const rig = await Rig.start(t, {
    masterKeyFile: secretFile(t, MASTER),
    bodyLimit: 1_024,
    routes: [relay({ name: 'memory', url: 'http://127.0.0.1:9/mcp' }), credentialFree({ name: 'repo_wiki' })],
  });
  await rig.mint({ servers: ['repo_wiki', 'memory'] }, VIRTUAL);
  const good = { 'x-gateway-api-key': `Bearer ${VIRTUAL}` };
  const bearer = (value: string) => ({ ...good, authorization: `Bearer ${value}` });
  const cases: readonly [path: string, body: unknown, headers: Record<string, string>, status: number][] = [
    ['/repo_wiki/mcp', '{', bearer(VIRTUAL), 400],
    ['/repo_wiki/mcp', [initialize], { ...good, 'x-api-key': VIRTUAL }, 400],
    ['/repo_wiki/mcp', initialize, { ...bearer(VIRTUAL), accept: 'text/html' }, 406],
    ['/repo_wiki/mcp', rpc('ping'), { ...bearer(VIRTUAL), 'mcp-session-id': 'nobody' }, 404],
    ['/repo_wiki/mcp', initialize, bearer(VIRTUAL), 503],
    ['/repo_wiki/mcp', '{', bearer(MASTER), 401],
    ['/memory/mcp', '{', bearer(VIRTUAL), 401],
    ['/mcp/', '{', bearer(VIRTUAL), 400],
    ['/mcp/sse', rpc('ping'), bearer(VIRTUAL), 404],
  ];
  for (const [path, body, headers, status] of cases) {
    const answer = await rig.post(path, body, headers);
    await answer.text();
    t.is(answer.status, status, `${path} ${JSON.stringify(body)}`);
    const found = (await rig.records()).filter(
      ({ correlation, event }) =>
        correlation === answer.headers.get('x-correlation-id') && event.type === 'CALL',
    );
    t.is(found.length, 1, path);
    const { authorization, misplaced } = found[0]!.event as { authorization?: string; misplaced?: object };
    t.true(misplaced !== undefined || /_key$/.test(authorization ?? ''));
  }
  t.deepEqual(await rig.alerts(), ['gateway.key_misplaced'], 'once a minute');
  // Before its handler: too large, from a foreign page, by another method.
  const origin = { origin: 'https://elsewhere.example' };
  const unread: [
    path: string,
    method: string,
    headers: Record<string, string>,
    told: object,
    status: number,
  ][] = [
    ['/repo_wiki/mcp', 'POST', bearer(VIRTUAL), { rule: 'not_read', where: 'header authorization' }, 413],
    ['/mcp/', 'PUT', { ...good, 'x-api-key': VIRTUAL }, { rule: 'not_read', where: 'header x-api-key' }, 405],
    [`/memory/mcp?a=${VIRTUAL}`, 'PUT', good, { rule: 'not_read', where: 'query' }, 405],
    [
      '/memory/mcp',
      'POST',
      { 'x-gateway-api-key': `Bearer ${MASTER}`, ...origin },
      { rule: 'master_key_presented' },
      403,
    ],
    [
      '/memory/mcp',
      'POST',
      { cookie: `a=${MASTER}`, ...origin },
      { rule: 'no_key', misplaced: 'master_key' },
      403,
    ],
  ];
  for (const [path, method, headers, told, status] of unread) {
    const json = { 'content-type': 'application/json' };
    const answer = await send(`${rig.url}${path}`, {
      method,
      headers: { ...json, ...headers },
      body: 'x'.repeat(2_048),
    });
    t.is(answer.status, status, path);
    const correlation = answer.headers['x-correlation-id'];
    const found = async () =>
      (await rig.records()).find((one) => one.correlation === correlation && one.event.type === 'REJECTED');
    while (!(await found())) await new Promise((resolve) => setTimeout(resolve, 5));
    const turned = await found();
    t.like(turned?.event, told);
    const ended = async () => (await rig.records()).find(({ cause }) => cause === turned?.seq);
    while (!(await ended())) await new Promise((resolve) => setTimeout(resolve, 5));
    t.like((await ended())?.event, { outcome: 'answered', status });
  }
  const before = (await rig.records()).length;
  t.is((await rig.post('/repo_wiki/mcp', '{', good)).status, 400);
  t.is((await rig.records()).length, before, 'about what only breaks the protocol nothing is decided');
  t.deepEqual(await rig.traces(VIRTUAL, MASTER), []);
});

test('[G9,G25] a key behind another value of a header that Node keeps but once is told, too', async (t) => {
  const masterKeyFile = secretFile(t, MASTER);
  const rig = await Rig.start(t, { masterKeyFile, routes: [credentialFree({ name: 'repo_wiki' })] });
  await rig.mint({ servers: ['repo_wiki'] }, VIRTUAL);
  const headers = {
    ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    'x-gateway-api-key': `Bearer ${VIRTUAL}`,
  };
  for (const name of ['authorization', 'referer']) {
    for (const [value, status] of [
      [MASTER, 401],
      [VIRTUAL, 503],
    ] as const) {
      const twice = { ...headers, [name]: [`Bearer ${TOKEN}`, `Bearer ${value}`] };
      const url = `${rig.url}/repo_wiki/mcp`;
      const answer = await send(url, { headers: twice, body: initialize });
      t.is(answer.status, status, name);
      const heard = (await rig.records()).find(
        ({ correlation, event }) =>
          correlation === answer.headers['x-correlation-id'] && event.type === 'CALL',
      );
      const key = value === MASTER ? 'master_key' : 'virtual_key';
      t.like(heard?.event, { misplaced: { key, where: `header ${name}` } });
    }
  }
  const both = { ...headers, referer: [VIRTUAL, MASTER] };
  t.is((await send(`${rig.url}/repo_wiki/mcp`, { headers: both, body: initialize })).status, 401);
  t.deepEqual(await rig.traces(VIRTUAL, MASTER), []);
});

test('[G25,G19] a key in the name of a tool or of a method is in no record', async (t) => {
  const masterKeyFile = secretFile(t, MASTER);
  const { url } = await startUpstream(t);
  const rig = await Rig.start(t, { masterKeyFile, routes: [credentialFree({ name: 'repo_wiki', url })] });
  await rig.mint({ servers: ['repo_wiki'] }, VIRTUAL);
  const client = await rig.connect(t, 'repo_wiki', VIRTUAL);
  for (const key of [VIRTUAL, MASTER]) {
    await client.callTool({ name: `repo_wiki-${key}`, arguments: {} }).catch(() => undefined);
    await client.request({ method: key }, z.any()).catch(() => undefined);
  }
  const calls = (await rig.records()).filter(({ event }) => event.type === 'CALL');
  t.deepEqual(
    calls.slice(-4).map(({ event: { method, tool } }) => [method, tool]),
    [VIRTUAL, MASTER].flatMap(() => [
      ['tools/call', '(a key)'],
      ['(a key)', undefined],
    ]),
  );
  t.deepEqual(await rig.traces(VIRTUAL, MASTER), []);
});

test('[G25] the master key opens the admin endpoints and no route, and is told once a minute', async (t) => {
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: 'http://127.0.0.1:9/mcp' })],
  });
  for (let count = 0; count < 3; count += 1) {
    const answer = await rig.post('/repo_wiki/mcp', initialize, {
      'x-gateway-api-key': `Bearer ${rig.masterKey}`,
    });
    t.is(answer.status, 401);
    t.regex(await answer.text(), /master key is for admin endpoints only/);
  }
  t.deepEqual(await rig.alerts(), ['gateway.master_key_presented']);
  t.is((await rig.admin('GET', '/v1/mcp/server')).status, 200);
  t.deepEqual(await rig.traces(rig.masterKey), []);
});

test('[G9,G25] trailers pass in neither direction, so that no key in one gets anywhere', async (t) => {
  const trailers: unknown[] = [];
  const upstream = await startScripted(t, (response, heard, request) => {
    trailers.push({ ...request.trailers });
    response.writeHead(200, { 'content-type': 'application/json', trailer: 'x-token' });
    response.addTrailers({ 'x-token': TOKEN });
    response.end(resultFor(heard, {}));
  });
  const masterKeyFile = secretFile(t, MASTER);
  const routes = [credentialFree({ name: 'repo_wiki', url: upstream.url })];
  const rig = await Rig.start(t, { masterKeyFile, routes });
  await rig.mint({ servers: ['repo_wiki'] }, VIRTUAL);
  const headers = {
    ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    ...{ 'x-gateway-api-key': `Bearer ${VIRTUAL}`, trailer: 'x-api-key, mcp-param-who' },
  };
  for (const path of ['/repo_wiki/mcp', '/mcp/']) {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(`${rig.url}${path}`, { method: 'POST', headers, agent: false }, (response) => {
        response.resume().on('end', () => resolve(response));
      });
      asked.on('error', reject).write(JSON.stringify(initialize));
      asked.addTrailers({ 'x-api-key': MASTER, 'mcp-param-who': VIRTUAL });
      asked.end();
    });
    t.is(answer.statusCode, 200, path);
    t.deepEqual({ ...answer.trailers }, {});
  }
  t.true(trailers.length >= 2);
  t.true(trailers.every((one) => Object.keys(one as object).length === 0));
  const received = JSON.stringify(upstream.heard);
  for (const secret of [VIRTUAL, MASTER, 'x-api-key']) t.false(received.includes(secret));
  t.deepEqual(await rig.traces(VIRTUAL, MASTER, TOKEN), []);
});
