import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { call } from '../../support/cli.ts';
import { fakeDisk, startChild } from '../../support/disk.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { callGrpc } from './grpc-client.ts';
import { post, span, traces, until } from './rig.ts';

const binary = new URL('../../../bin/holdfast.js', import.meta.url);
const plugin = (name: string) =>
  JSON.stringify(new URL(`../../../src/plugins/${name}/index.ts`, import.meta.url).pathname);

/** @param plugins as they stand in the list */
function writeConfig(dir: string, plugins: string): string {
  const file = join(dir, 'plugins.config.ts');
  const core = JSON.stringify(new URL('../../../src/index.ts', import.meta.url).pathname);
  writeFileSync(
    file,
    `import { defineConfig } from ${core};
     import { columnar } from ${plugin('columnar')};
     import { collector } from ${plugin('collector')};
     import { consolePlugin } from ${plugin('console')};
     import { otlp } from ${plugin('otlp')};
     import { secretsFolder } from ${plugin('secrets')};
     export default defineConfig({
       plugins: [${plugins}, otlp({ port: 0, grpcPort: 0 }), consolePlugin({ port: 0 })],
     });`,
  );
  return file;
}

/** A Holdfast of its own process with the embedded engine, as a user starts it. */
async function start(
  t: Scope,
  dir: string,
  env: Readonly<Record<string, string>>,
  plugins = 'columnar(), collector()',
) {
  const dataDir = join(dir, 'data');
  const child = startChild(
    t,
    binary,
    ['start', '--data-dir', dataDir, '--config', writeConfig(dir, plugins)],
    {
      NODE_NO_WARNINGS: '1',
      ...env,
    },
  );
  const surfaces = () => {
    const file = readRuntimeFile(dataDir);
    return file?.pid === child.process.pid ? file?.surfaces : undefined;
  };
  await until(() => child.process.exitCode !== null || (surfaces()?.console && surfaces()?.otlpGrpc));
  const { otlpHttp, otlpGrpc, console: pages } = surfaces() ?? {};
  if (!otlpHttp || !otlpGrpc || !pages) throw new Error(`it ended:\n${child.errors.join('\n')}`);
  return {
    child,
    http: otlpHttp.url,
    grpc: otlpGrpc.url,
    key: readFileSync(join(dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim(),
    async health(): Promise<{ ok: boolean; reason?: string }> {
      const page = (await (await fetch(`${pages.url}/healthz`)).json()) as { otlp: never };
      return page.otlp;
    },
    holdfast: (...argv: string[]) => call([...argv, '--data-dir', dataDir], { cwd: dir }),
  };
}

test('[O1] a full disk acknowledges nothing, and a kill -9 between answer and insert costs and doubles nothing', async (t) => {
  t.timeout(240_000);
  const dir = tempDir(t);
  const disk = fakeDisk(dir);
  const holdfast = await start(t, dir, disk.env);
  const acknowledged: string[] = [];
  const send = async (name: string) => {
    const answer = await post(holdfast, '/v1/traces', traces('s', span(name)));
    if (answer.status === 200) acknowledged.push(name);
    return answer;
  };
  t.is((await send('first')).status, 200);

  disk.fill('otlp-spool/');
  const refused = await send('refused');
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '30');
  t.regex(await refused.text(), /ENOSPC/);
  // An empty request needs no room: it is refused while the refusal just before it lasts, which a busy machine may outlast.
  let call = await callGrpc(holdfast.grpc, holdfast.key);
  await until(async () => {
    if (call.code === status.UNAVAILABLE) return true;
    t.is((await send('refused')).status, 503);
    call = await callGrpc(holdfast.grpc, holdfast.key);
    return false;
  });
  t.true(call.metadata?.get('grpc-status-details-bin')[0]?.toString().includes('google.rpc.RetryInfo'));
  t.like(await holdfast.health(), { ok: false, reason: 'telemetry is refused: the disk refuses: ENOSPC' });
  const doctor = await holdfast.holdfast('doctor', 'stack');
  t.regex(doctor.out, /the disk refuses: ENOSPC[\s\S]*Make room/);
  disk.free();
  await until(async () => (await holdfast.health()).ok);
  t.is((await send('after')).status, 200);

  disk.fill('/data.bin');
  t.is((await send('short')).status, 200);
  // The answer does not wait for the insert that fails.
  let short = '';
  await until(async () => {
    short = (await holdfast.health()).reason ?? '';
    return short !== '';
  });
  t.regex(
    short,
    /kept on disk since .*the system refused/,
    'a write that fails once there seemed to be room',
  );
  disk.free();
  await until(async () => (await holdfast.health()).ok);

  disk.fill('columnar/');
  for (let at = 0; at < 20; at += 1) t.is((await send(`kept ${at}`)).status, 200);
  await until(async () => !(await holdfast.health()).ok);
  t.regex((await holdfast.health()).reason ?? '', /kept on disk since .*NOT_ENOUGH_SPACE/);
  disk.hold();
  const syncs = () => readFileSync(disk.traceFile, 'utf8').length;
  const before = syncs();
  let isAnswered = false;
  const held = send('held').then(() => {
    isAnswered = true;
  });
  await until(() => syncs() > before);
  t.false(isAnswered, 'what the disk has not confirmed is not acknowledged');
  disk.release();
  await held;
  await holdfast.child.kill('SIGKILL');
  disk.free();
  const again = await start(t, dir, disk.env);
  const sql = 'SELECT SpanName, count() FROM otel_traces GROUP BY SpanName';
  let rows: [name: string, count: string][] = [];
  await until(async () => {
    const { out } = await again.holdfast('stack', 'query', sql, '--json');
    rows = JSON.parse(out).rows ?? [];
    return rows.length >= acknowledged.length;
  });
  const counted = rows.map(([name, count]) => `${name}: ${count}`);
  t.deepEqual(counted.sort(), acknowledged.map((name) => `${name}: 1`).sort());
});

test('[O9] a rotation that kill -9 interrupts at each of its waits goes on, with one new key and the old one beside it', async (t) => {
  t.timeout(240_000);
  const dir = tempDir(t);
  const again = () => start(t, dir, {}, "collector({ externalProducers: ['edge'] }), secretsFolder()");
  let holdfast = await again();
  const { key: old } = holdfast;
  const send = async (key: string, service: string) =>
    (await post({ ...holdfast, key }, '/v1/traces', traces(service, span('x')))).status;
  const say = (...words: string[]) => holdfast.holdfast('stack', 'rotate-ingest-key', ...words);
  const view = async () => {
    const { out } = await say('--show', '--json');
    return JSON.parse(out) as { state: string; fresh?: string; pending: string[]; unconfirmed: string[] };
  };
  const restart = async () => {
    await say('--resume', '--no-follow'); // answered when it, and so all before it, is durable
    await holdfast.child.kill('SIGKILL');
    holdfast = await again();
  };
  t.is(await send(old, 'scraper'), 200);
  await say('--no-follow');
  await restart(); // wherever it was by then
  await until(async () => (await view()).state.startsWith('refresh'));
  const { fresh } = await view();
  const { key } = holdfast;
  t.not(key, old);
  await restart();
  t.is(holdfast.key, key);
  t.is((await view()).fresh, fresh);
  t.true((await view()).pending.includes('scraper'));
  t.is(await send(old, 'scraper'), 200, 'the old key admits meanwhile');
  t.is(await send(key, '127.0.0.1'), 200);
  t.is(await send(key, 'scraper'), 200);
  await until(async () => (await view()).state.startsWith('external'));
  await restart();
  t.deepEqual((await view()).unconfirmed, ['edge']);
  await say('--external-done', '--no-follow');
  await restart();
  await until(async () => (await view()).state === 'done');
  t.is((await view()).fresh, fresh);
  t.is(await send(old, 'scraper'), 401);
  t.is(await send(key, 'scraper'), 200);
});
