import { brotliCompressSync, gzipSync } from 'node:zlib';
import test from 'ava';
import { request } from 'undici';
import { Rig } from './rig.ts';

const LIMIT = 64 * 1024;

/** A router, and a way to post bytes to it under any headers. */
async function start(t: Parameters<typeof Rig.start>[0]) {
  const rig = await Rig.start(t, { options: { bodyLimit: LIMIT } });
  const post = async (path: string, body: Buffer | string, headers: Record<string, string> = {}) => {
    const answer = await request(`${rig.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    return { status: answer.statusCode, body: (await answer.body.json()) as any };
  };
  return { rig, post, set: (body: Buffer | string, headers = {}) => post('/v1/config/set', body, headers) };
}

test.serial('[R8] a gzip body is read like any other', async (t) => {
  const { rig, set } = await start(t);
  const config = await rig.active();
  config.interface.vlan['eth1.10'].extra = { note: 'x'.repeat(30_000) };
  for (const encoding of ['gzip', 'GZIP', 'x-gzip']) {
    const body = gzipSync(JSON.stringify({ ...config, ncid: (await rig.active()).ncid }));
    const answer = await set(body, { 'content-encoding': encoding });
    t.is(answer.status, 200, encoding);
  }
  t.is((await rig.active()).interface.vlan['eth1.10'].extra.note.length, 30_000);
  const plain = JSON.stringify({ ...config, ncid: (await rig.active()).ncid });
  t.is((await set(plain, { 'content-encoding': 'identity' })).status, 200);
});

test.serial('what a gzip body inflates to counts, not what was sent', async (t) => {
  const { rig, set } = await start(t);
  const before = await rig.active();
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, 'x'));
  t.true(bomb.length > LIMIT, 'its own length is refused first');
  t.is((await set(bomb, { 'content-encoding': 'gzip' })).status, 413);
  const small = gzipSync(Buffer.alloc(40 * 1024 * 1024, 'x'));
  t.true(small.length < LIMIT);
  const grown = process.memoryUsage().rss;
  t.is((await set(small, { 'content-encoding': 'gzip' })).status, 413);
  t.true(process.memoryUsage().rss - grown < 20 * 1024 * 1024, 'it is not inflated beyond the limit');
  t.deepEqual(await rig.active(), before);
});

test.serial('a gzip body that is damaged or cut off is 400, and nothing is applied', async (t) => {
  const { rig, set } = await start(t);
  const before = await rig.active();
  const whole = gzipSync(JSON.stringify(before));
  for (const body of [Buffer.from('{}'), whole.subarray(0, whole.length / 2), whole.subarray(0, 4)]) {
    const answer = await set(body, { 'content-encoding': 'gzip' });
    t.is(answer.status, 400);
    t.is(answer.body.code, 'HF_HTTP_BODY_INVALID');
    t.regex(answer.body.errors[0], /not gzip/);
  }
  t.deepEqual(await rig.active(), before);
});

test.serial('another content encoding and a foreign charset are 415, each by its name', async (t) => {
  const { rig, post } = await start(t);
  const text = JSON.stringify(await rig.active());
  const br = brotliCompressSync(text);
  for (const path of ['/v1/config/set', '/v1/config/apply_current_config']) {
    const encoded = await post(path, br, { 'content-encoding': 'br' });
    t.is(encoded.status, 415);
    t.regex(encoded.body.errors[0], /content encoding br/);
    for (const charset of ['iso-8859-1', '"UTF-16"', 'us-ascii']) {
      const type = `application/json; charset=${charset}`;
      const foreign = await post(path, text, { 'content-type': type });
      t.is(foreign.status, 415, charset);
      t.is(foreign.body.code, 'HF_ROUTER_BODY_ENCODING');
      t.regex(foreign.body.errors[0], /charset (iso-8859-1|utf-16|us-ascii) /);
    }
  }
  for (const charset of ['utf-8', 'UTF8', '"utf-8"']) {
    const type = `application/json;charset=${charset}`;
    const ncid = (await rig.active()).ncid;
    const answer = await post('/v1/config/set', JSON.stringify({ ...JSON.parse(text), ncid }), {
      'content-type': type,
    });
    t.is(answer.status, 200, charset);
  }
});

test.serial('[R11] apply_current_config refuses a broken JSON body and ignores any other', async (t) => {
  const { post } = await start(t);
  const path = '/v1/config/apply_current_config';
  for (const body of ['{', '"x"', 'null', '7', 'x=1', '{"a":1']) {
    const answer = await post(path, body);
    t.is(answer.status, 400, body);
    t.is(answer.body.code, 'HF_HTTP_BODY_INVALID');
  }
  for (const body of ['', '{}', '[]', '{"any":1}']) t.is((await post(path, body)).status, 200, body);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  t.is((await post(path, 'x=1', form)).status, 200);
  t.is((await post(path, gzipSync('{'), { 'content-encoding': 'gzip' })).status, 400);
  t.is((await post(path, gzipSync('{}'), { 'content-encoding': 'gzip' })).status, 200);
});

test.serial('paths are found in any letter case and with a slash behind them', async (t) => {
  const { rig, post } = await start(t);
  const active = await rig.active();
  for (const path of ['/v1/config/active/', '/V1/Config/ACTIVE', '/v1/config/Active/?x=1'])
    t.deepEqual((await rig.call('GET', path)).body, active, path);
  t.is((await rig.call('GET', '/v1/config/INTERFACES/eth1.10/')).status, 200);
  t.is((await post('/v1/Config/Set/', JSON.stringify(active))).status, 200);
  t.is((await rig.call('PUT', '/v1/config/SET/', {})).status, 405);
  t.is((await rig.call('GET', '/v1/config/active//')).status, 404);
});
