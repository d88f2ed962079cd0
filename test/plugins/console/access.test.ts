import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { OneTimeCodes } from '../../../src/plugins/console/access/one-time-codes.ts';
import { Sessions } from '../../../src/plugins/console/access/sessions.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ConsoleRig } from './console-rig.ts';

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
  t.is(
    (await rig.send('/api/logout', { method: 'POST', headers: { origin: 'http://localhost:1' } })).status,
    403,
  );
  t.is((await rig.send('/api/log', { headers: { cookie: rig.cookie.replace(/.$/, '!') } })).status, 401);
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
