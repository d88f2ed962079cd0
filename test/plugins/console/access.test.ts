import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { request } from 'undici';
import { OneTimeCodes } from '../../../src/plugins/console/access/one-time-codes.ts';
import { Sessions } from '../../../src/plugins/console/access/sessions.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { doors } from './busy-doors.ts';
import { type Answered, ConsoleRig } from './console-rig.ts';

test('[C15] a one-time code lets one browser in, once', async (t) => {
  const rig = await ConsoleRig.start(t);
  const page = await rig.send('/login');
  t.is(page.status, 200);
  t.regex(String(page.headers['content-security-policy']), /default-src 'none'; script-src 'self'/);
  t.notRegex(page.text, /<script>|style=/, 'nothing inline');

  t.is((await rig.send('/api/log')).status, 401);
  t.is((await rig.send('/api/log')).body.error.code, 'HF_CONSOLE_LOGIN');
  const redirected = await rig.send('/actors?at=3');
  t.is(redirected.status, 303);
  t.is(redirected.headers.location, '/login?next=%2Factors%3Fat%3D3');

  const code = await rig.code();
  const first = await rig.send('/api/login', { method: 'POST', body: { code } });
  t.is(first.status, 200);
  const cookie = String(first.headers['set-cookie']);
  t.regex(cookie, /^holdfast_\d+=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
  const again = await rig.send('/api/login', { method: 'POST', body: { code } });
  t.is(again.status, 403);
  t.is(again.body.error.code, 'HF_CONSOLE_CODE');

  rig.cookie = cookie.split(';', 1)[0] ?? '';
  t.is((await rig.send('/api/log')).status, 200);
  t.is((await rig.send('/api/session')).body.by, 'ada');
  t.is((await rig.send('/')).status, 200);

  await rig.durable();
  const records = await rig.ask('/api/records?actor=console.access');
  t.like(records.records[0], { event: 'LOGGED_IN', actor: 'console.access/host', failed: false });
  t.regex(records.records[0].text, /^ada logs in to the console from /);
  const everything = JSON.stringify(await Array.fromAsync(rig.runtime.services.log.read()));
  for (const secret of [code, rig.cookie.split('=')[1] ?? '']) {
    t.false(everything.includes(secret), 'no secret in the log');
    t.false(
      rig.lines.some((line) => line.includes(secret)),
      'no secret in log lines',
    );
  }

  const out = await rig.send('/api/logout', { method: 'POST' });
  t.regex(String(out.headers['set-cookie']), /Max-Age=0/);
  t.is((await rig.send('/api/log')).status, 401, 'the old cookie is good for nothing');
});

test('[C15] nothing of another origin is let in, and a write with the cookie needs its own', async (t) => {
  const rig = await ConsoleRig.start(t);
  const code = await rig.code();
  const login = (headers: Record<string, string>) =>
    rig.send('/api/login', { method: 'POST', body: { code }, headers });
  for (const origin of ['https://evil.example', 'http://127.0.0.1:9999', 'null', ''])
    t.is((await login({ origin })).status, 403, origin);
  t.is((await login({ 'sec-fetch-site': 'same-site' })).status, 403);
  t.is((await login({ host: 'evil.example' })).status, 421);
  await rig.login();
  t.is((await rig.send('/api/log', { headers: { 'sec-fetch-site': 'same-site' } })).status, 403);
  t.is((await rig.send('/api/log', { headers: { 'sec-fetch-site': 'same-origin' } })).status, 200);
  // A window that a page on another port opens: a page of ours is only shown, a question costs work for nobody.
  const opens = (site: string) => ({
    headers: { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  });
  for (const site of ['same-site', 'cross-site']) {
    t.is((await rig.send('/actors', opens(site))).status, 200, site);
    t.is(
      (await rig.send('/api/pages/sql?sql=SELECT+1', opens(site))).body.error.code,
      'HF_HTTP_ORIGIN',
      site,
    );
    t.is((await rig.send('/api/log', opens(site))).status, 403, site);
  }
  t.is((await rig.send('/api/log', opens('none'))).status, 200, 'an address that somebody typed');
  t.is(
    (await rig.send('/api/logout', { method: 'POST', headers: { origin: 'http://localhost:1' } })).status,
    403,
  );
  t.is((await rig.send('/api/log', { headers: { cookie: rig.cookie.replace(/.$/, '!') } })).status, 401);
});

test('[C15] of two windows with one code one is let in; a refused page of another origin uses up neither code nor attempts', async (t) => {
  const rig = await ConsoleRig.start(t);
  const code = await rig.code();
  const login = (headers: Record<string, string> = {}) =>
    rig.send('/api/login', { method: 'POST', body: { code }, headers });
  for (let attempt = 0; attempt < 12; attempt += 1)
    t.is((await login({ origin: 'http://127.0.0.1:9999' })).status, 403);
  const answers = await Promise.all([login(), login(), login()]);
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 403, 403]);
});

test('[C15] a rebound name reaches nothing, and no post with the cookie is taken from another origin or without one', async (t) => {
  const rig = await ConsoleRig.start(t, { others: [doors()] });
  await rig.login();
  for (const path of ['/', '/login', '/login.js', '/api/log', '/api/records', '/api/openapi.json', '/livez'])
    for (const host of ['evil.example', `evil.example:${new URL(rig.url).port}`, '127.0.0.1.evil.example'])
      t.is((await rig.send(path, { headers: { host } })).status, 421, `${path} ${host}`);
  const posts = ['/api/logout', '/api/what-if', '/api/actions/knock'];
  const body = { fields: { door: 'door-1' } };
  for (const path of posts) {
    for (const origin of [
      'http://evil.example',
      'http://127.0.0.1:9999',
      rig.url.replace('http', 'https'),
      'null',
    ])
      t.is(
        (await rig.send(path, { method: 'POST', body, headers: { origin } })).body.error.code,
        'HF_HTTP_ORIGIN',
      );
    const bare = await request(rig.url + path, {
      ...{ method: 'POST', dispatcher: rig.dispatcher, body: JSON.stringify(body) },
      headers: { cookie: rig.cookie, 'content-type': 'application/json' },
    });
    t.is(bare.statusCode, 403, `${path} without an origin`);
    await bare.body.dump();
    const form = { 'content-type': 'text/plain' };
    t.is((await rig.send(path, { method: 'POST', body, headers: form })).status, 415, `${path} as a form`);
  }
  t.is((await rig.send('/api/session')).status, 200, 'nobody was logged out');
  await rig.durable();
  t.is((await rig.ask('/api/records?event=ACTED')).records.length, 0);
});

test('[C15] every kind of answer forbids scripts from elsewhere, frames, other readers and caches', async (t) => {
  const rig = await ConsoleRig.start(t, { others: [doors()] });
  const answers: (readonly [string, Answered])[] = [];
  const ask = async (path: string, status: number, sent?: Parameters<ConsoleRig['send']>[1]) => {
    const answer = await rig.send(path, sent);
    t.is(answer.status, status, path);
    answers.push([`${path} ${status}`, answer]);
  };
  await ask('/login', 200);
  await ask('/login.js', 200);
  await ask('/login.css', 200);
  await ask('/actors', 303);
  await ask('/api/log', 401);
  await ask('/api/login', 403, { method: 'POST', body: { code: 'none' } });
  await ask('/api/login', 400, { method: 'POST' });
  await ask('/login', 421, { headers: { host: 'evil.example' } });
  await ask('/api/logout', 403, { method: 'POST', headers: { origin: 'http://evil.example' } });
  await ask('/api/login', 415, { method: 'POST', headers: { 'content-type': 'text/plain' } });
  await rig.login();
  const page = await rig.send('/');
  const [, script = ''] = /src="([^"]+)"/.exec(page.text) ?? [];
  for (const path of ['/', '/stories', '/api/log', '/api/records', '/api/openapi.json', '/index.html'])
    await ask(path, 200);
  await ask('/nothing.js', 404);
  await ask('/api/nothing', 404);
  await ask('/api/actors/test.door%2Fnone', 404);
  await ask('/api/records?at=x', 400);
  const events = await request(`${rig.url}/api/events`, { headers: { cookie: rig.cookie } });
  events.body.on('error', () => {}).destroy();
  answers.push(['/api/events', { status: 200, headers: events.headers, text: '', body: undefined }]);
  for (const [what, { headers }] of answers) {
    const policy = String(headers['content-security-policy']).split('; ');
    for (const rule of ["default-src 'none'", "script-src 'self'", "base-uri 'none'", "form-action 'none'"])
      t.true(policy.includes(rule), `${what}: ${rule}`);
    for (const rule of ["frame-ancestors 'none'", "require-trusted-types-for 'script'"])
      t.true(policy.includes(rule), `${what}: ${rule}`);
    t.notRegex(policy.join(), /unsafe|https?:|\*/, what);
    t.like(
      headers,
      {
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      },
      what,
    );
    t.deepEqual(
      Object.keys(headers).filter((name) => name.startsWith('access-control')),
      [],
      what,
    );
  }
  const unreadable = await rig.send('/actors/%ff');
  t.is(unreadable.status, 400);
  t.like(unreadable.headers, { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
  const asset = await rig.send(script);
  t.is(asset.headers['cache-control'], 'private, max-age=31536000, immutable', 'its name has its hash');
});

test('[C15] behind a proxy with TLS the cookie is for TLS alone, and for no other host', async (t) => {
  const rig = await ConsoleRig.start(t, { options: { allowedHosts: ['holdfast.example'] } });
  const headers = { host: 'holdfast.example', origin: 'https://holdfast.example' };
  const { status, headers: answered } = await rig.send('/api/login', {
    ...{ method: 'POST', body: { code: await rig.code() }, headers },
  });
  t.is(status, 200);
  const cookie = String(answered['set-cookie']);
  t.regex(cookie, /^__Host-holdfast_\d+=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/);
  rig.cookie = cookie.split(';', 1)[0] ?? '';
  t.is((await rig.send('/api/log', { headers: { host: 'holdfast.example' } })).status, 200);
});

test('[C15] a cookie ends with the instance, and so do codes', async (t) => {
  const dataDir = tempDir(t);
  const first = await ConsoleRig.start(t, { dataDir });
  await first.login();
  const code = await first.code();
  await first.runtime.stop('restart');
  const second = await ConsoleRig.start(t, { dataDir });
  const value = first.cookie.split('=')[1];
  const { port } = new URL(second.url);
  second.cookie = `holdfast_${port}=${value}`;
  t.is((await second.send('/api/log')).status, 401);
  t.is((await second.send('/api/login', { method: 'POST', body: { code } })).status, 403);
});

test('[C15] who tries codes has to wait, and a record says so', async (t) => {
  const rig = await ConsoleRig.start(t);
  const statuses: number[] = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    const { status } = await rig.send('/api/login', { method: 'POST', body: { code: `guess-${attempt}` } });
    statuses.push(status);
  }
  t.deepEqual(new Set(statuses.slice(0, 10)), new Set([403]));
  t.deepEqual(statuses.slice(10), [429, 429]);
  const good = await rig.send('/api/login', { method: 'POST', body: { code: await rig.code() } });
  t.is(good.status, 429, 'the right one has to wait, too');
  await rig.durable();
  const refusals = await Array.fromAsync(rig.runtime.services.log.read({ actor: 'console.access/host' }));
  t.is(refusals.filter(({ event }) => event.type === 'LOGIN_REFUSED').length, 1);
});

test('[C15] a program uses the token, without a cookie or an origin', async (t) => {
  const dataDir = tempDir(t);
  const tokenFile = join(dataDir, 'console-token');
  writeFileSync(tokenFile, 'a-token-of-the-proxy\n', { mode: 0o600 });
  const rig = await ConsoleRig.start(t, { dataDir, options: { tokenFile } });
  const headers = { authorization: 'Bearer a-token-of-the-proxy' };
  t.is((await rig.send('/api/session', { headers })).body.by, 'token');
  t.is((await rig.send('/api/session', { headers: { authorization: 'Bearer another' } })).status, 401);
  t.is((await rig.send('/livez')).status, 200, 'health needs neither');
  t.is((await rig.send('/metrics')).status, 200);
});

test('[C15] `holdfast console` prints a link whose code lets a browser in', async (t) => {
  const rig = await ConsoleRig.start(t);
  const config = new URL('../../support/router-config.ts', import.meta.url).pathname;
  const argv = ['console', '--no-open', '--config', config, '--data-dir', rig.dataDir];
  const { code, out, err } = await call(argv, { cwd: tempDir(t) });
  t.is(code, 0, err);
  const [, url, secret = ''] = /^(\S+)\/login#(\S+)\n$/.exec(out) ?? [];
  t.is(url, rig.url);
  t.regex(err, /It works once, until /);
  await rig.loginWith(secret);
  t.is((await rig.send('/api/log')).status, 200);
  await rig.runtime.stop('test');
  const stopped = await call(argv, { cwd: tempDir(t) });
  t.regex(stopped.err, /HF_CONTROL_UNREACHABLE/);
});

test('[C15] codes and sessions end by time that passes, whatever the wall clock says', (t) => {
  const clock = new VirtualClock();
  const codes = new OneTimeCodes();
  const [early, late] = [codes.make('ann', clock.monotonic()), codes.make('bob', clock.monotonic())];
  clock.set(-86_400_000);
  t.is(codes.redeem(early, clock.monotonic() + 299_000), 'ann');
  t.is(codes.redeem(early, clock.monotonic()), undefined, 'it was used');
  t.is(codes.redeem(late, clock.monotonic() + 300_000), undefined, 'it is too old');
  const first = codes.make('first', 0);
  for (let more = 0; more < 20; more += 1) codes.make('more', 0);
  t.is(codes.redeem(first, 0), undefined, 'no more than 20 wait');

  const sessions = new Sessions(60_000);
  const { session, secret } = sessions.begin('ann', { now: () => 0, monotonic: () => 0 });
  t.is(sessions.find(secret, 59_999)?.by, 'ann');
  t.is(sessions.find(`${secret}x`, 0), undefined);
  t.false(session.ended.aborted);
  sessions.sweep(60_000);
  t.true(session.ended.aborted, 'what follows it ends');
  t.is(sessions.find(secret, 0), undefined);
});
