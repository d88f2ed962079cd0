import { spawn } from 'node:child_process';
import { chmodSync, linkSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { tempDir } from '../../../support/temp.ts';
import { commonRoutes, serve } from './support.ts';

/** Sends a request to a socket. */
function ask(
  socketPath: string,
  {
    path = '/thing/1',
    ...options
  }: { path?: string; method?: string; headers?: Record<string, string> } = {},
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'localhost', ...options.headers };
    request({ socketPath, path, agent: false, ...options, headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    })
      .on('error', reject)
      .end();
  });
}

const modeOf = (file: string): string => (lstatSync(file).mode & 0o777).toString(8);

/** @returns why a surface on such a socket does not listen */
async function refusal(t: ExecutionContext, socket: { path: string; group?: string | number }) {
  const surface = createSurface(
    { name: 'test', port: 0, portVariable: 'NONE', socket: { mode: '0660', ...socket } },
    { logger: createLogger({ level: 'silent' }) },
  );
  t.teardown(() => surface.close(0));
  return t.throwsAsync(surface.listen(), { code: 'HF_HTTP_SOCKET' });
}

test('[C14] a surface listens on a Unix socket in place of a port, with the mode of its options, and leaves none', async (t) => {
  const folder = tempDir(t);
  for (const mode of ['0600', '0660', '0666'] as const) {
    const path = join(folder, 's');
    const { url, surface } = await serve(t, { socket: { path, mode } });
    t.is(url, `unix:${path}`);
    t.is(modeOf(path), mode.slice(1));
    t.is(await ask(path), 200);
    await surface.close(0);
    t.deepEqual(readdirSync(folder), [], 'the folder in which it got its mode is gone too');
  }
});

test('[C14] with `auth: token` a socket demands the token too, and without it its rights decide', async (t) => {
  const path = join(tempDir(t), 's');
  await serve(t, { socket: { path, mode: '0600' }, auth: 'token', token: () => 'a-token' });
  t.is(await ask(path), 401);
  t.is(await ask(path, { headers: { authorization: 'Bearer another' } }), 401);
  t.is(await ask(path, { headers: { authorization: 'Bearer a-token' } }), 200);
});

test('[C14] a write from a page of another origin is refused on a socket as on a port', async (t) => {
  const path = join(tempDir(t), 's');
  await serve(t, { socket: { path, mode: '0600' } });
  const headers = { origin: 'http://127.0.0.1:9999' };
  t.is(await ask(path, { path: '/act', method: 'POST', headers }), 403);
  t.is(await ask(path, { path: '/act', method: 'POST' }), 200);
  t.is(await ask(path, { headers: { host: 'evil.example' } }), 421);
});

test('[C14] a socket that a killed process left is replaced; one that answers, or a file, is not', async (t) => {
  const folder = tempDir(t);
  const path = join(folder, 's');
  const other = createServer().listen(path);
  await new Promise((resolve) => other.once('listening', resolve));
  t.regex((await refusal(t, { path }))?.message ?? '', /another process listens on it/);
  linkSync(path, join(folder, 'left'));
  await new Promise((resolve) => other.close(resolve));
  const { surface } = await serve(t, { socket: { path: join(folder, 'left'), mode: '0600' } });
  t.is(await ask(join(folder, 'left')), 200);
  await surface.close(0);
  writeFileSync(path, 'precious');
  t.regex((await refusal(t, { path }))?.message ?? '', /no socket/);
  t.is(lstatSync(path).size, 8);
});

test('[C14] a socket lies only where no other user can put one in its place', async (t) => {
  const folder = tempDir(t);
  const open = join(folder, 'open');
  mkdirSync(open);
  for (const mode of [0o777, 0o1777, 0o702]) {
    chmodSync(open, mode);
    t.regex((await refusal(t, { path: join(open, 's') }))?.message ?? '', /others may write to/);
  }
  const below = join(open, 'below');
  mkdirSync(below, { mode: 0o700 });
  chmodSync(open, 0o777);
  t.regex((await refusal(t, { path: join(below, 's') }))?.message ?? '', /others may write to/, 'above');
  symlinkSync(below, join(folder, 'link'));
  t.regex(
    (await refusal(t, { path: join(folder, 'link', 's') }))?.message ?? '',
    /others may write/,
    'by a link',
  );
  t.regex((await refusal(t, { path: join(folder, 'none', 's') }))?.message ?? '', /does not exist/);
  chmodSync(open, 0o755);
  const { url } = await serve(t, { socket: { path: join(folder, 'link', 's'), mode: '0600' } });
  t.is(url, `unix:${join(below, 's')}`, 'clients are told the place without links');
});

test('[C14] the group of a socket is one of this machine, by name or number', async (t) => {
  const path = join(tempDir(t), 's');
  t.regex((await refusal(t, { path, group: 'no-such-group' }))?.message ?? '', /no group no-such-group/);
  const gid = process.getegid?.() ?? 0;
  const { surface } = await serve(t, { socket: { path, mode: '0660', group: gid } });
  t.is(lstatSync(path).gid, gid);
  await surface.close(0);
  if (process.geteuid?.() !== 0) return;
  await serve(t, { socket: { path, mode: '0660', group: 'nogroup' } });
  t.is(lstatSync(path).gid, 65_534);
});

test('[C14] `auth: token` asks callers of this machine too, and starts only with a token', async (t) => {
  const { url } = await serve(t, { auth: 'token', token: () => 'a-token' });
  t.is((await fetch(`${url}/thing/1`)).status, 401);
  const headers = { authorization: 'Bearer a-token' };
  t.is((await fetch(`${url}/thing/1`, { headers })).status, 200);
  await t.throwsAsync(serve(t, { auth: 'token' }), { code: 'HF_HTTP_TOKEN_MISSING' });
});

test('[R32] with secretsNeedToken only routes with secrets in their answer ask for the token', async (t) => {
  const build = (http: Parameters<typeof commonRoutes>[0]) => {
    commonRoutes(http);
    http.get('/secret', { config: { credential: 'secret' } }, () => ({ key: 'k' }));
  };
  const token = () => 'a-token';
  const { url } = await serve(t, { secretsNeedToken: true, token }, build);
  const refused = await fetch(`${url}/secret`);
  t.is(refused.status, 401);
  t.like(await refused.json(), { code: 'HF_HTTP_SECRETS' });
  t.is(refused.headers.get('www-authenticate'), 'Bearer');
  t.is((await fetch(`${url}/thing/1`)).status, 200);
  t.is((await fetch(`${url}/secret`, { headers: { authorization: 'Bearer a-token' } })).status, 200);
  const { url: open } = await serve(t, { token }, build);
  t.is((await fetch(`${open}/secret`)).status, 200, 'open on loopback unless it is set');
  await t.throwsAsync(serve(t, { secretsNeedToken: true }, build), { code: 'HF_HTTP_TOKEN_MISSING' });
  const path = join(tempDir(t), 's');
  await serve(t, { secretsNeedToken: true, socket: { path, mode: '0600' } }, build);
  t.is(await ask(path, { path: '/secret' }), 200, 'the rights of a socket are enough');
});

const CLIENT = `
  require('node:net').connect(process.argv[1], () => process.exit(0)).on('error', ({ code }) => process.exit(code === 'EACCES' ? 3 : 4));
`;

test('[C14] another user of this machine connects only where the mode lets them', async (t) => {
  const folder = tempDir(t);
  chmodSync(folder, 0o755);
  const asNobody = async (mode: '0600' | '0660' | '0666', group?: number) => {
    const name = `s${mode}${group}`;
    await serve(t, { socket: { path: join(folder, name), mode, ...(group !== undefined && { group }) } });
    // By its name in the folder: those above may be closed to others.
    const user = { uid: 65_534, gid: 65_534, cwd: folder };
    const child = spawn(process.execPath, ['-e', CLIENT, name], user);
    return new Promise((resolve) => child.once('close', resolve));
  };
  t.is(await asNobody('0600'), 3);
  t.is(await asNobody('0660'), 3);
  t.is(await asNobody('0660', 65_534), 0, 'its group is that of the socket');
  t.is(await asNobody('0666'), 0);
});
