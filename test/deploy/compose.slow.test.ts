/** The container of deploy/compose.yml, started without an engine: its command, variables, mounts and secrets. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { parse } from 'yaml';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { root } from '../support/cli.ts';
import { until } from '../support/redis.ts';
import { tempDir } from '../support/temp.ts';
import { startOnHost } from './host.ts';
import { deploy } from './manifests.ts';

const dockerfile = readFileSync(join(deploy, 'Dockerfile'), 'utf8');
const compose = parse(readFileSync(join(deploy, 'compose.yml'), 'utf8'));
const { holdfast } = compose.services;
const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? [];
const [, check = ''] = /^HEALTHCHECK .* CMD (.*)$/m.exec(dockerfile) ?? [];

test('the container has no rights that it does not need, and is published on loopback alone', (t) => {
  t.like(holdfast, {
    user: '65532:65532',
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  });
  t.is(holdfast.privileged, undefined);
  t.is(holdfast.network_mode, undefined);
  t.true(holdfast.ports.length > 5);
  for (const port of holdfast.ports) t.regex(port, /^127\.0\.0\.1:(\d+):\1$/);
  t.deepEqual(holdfast.volumes, ['data:/var/lib/holdfast']);
  // What lies in deploy/ is packed with the release.
  for (const { file } of Object.values<any>(compose.secrets)) t.regex(file, /^\/etc\//);
  t.true(existsSync(join(deploy, holdfast.build.context, holdfast.build.dockerfile)));
  t.regex(dockerfile.slice(dockerfile.lastIndexOf('FROM ')), /^USER 65532:65532$/m);
  t.true(dockerfile.match(/^FROM /gm)!.length > 1);
});

test('[C14] the container starts on a read-only root, asks every caller for its token, and its health check sees it', async (t) => {
  t.timeout(300_000);
  const volume = tempDir(t);
  chmodSync(volume, 0o1777);
  const secrets = tempDir(t);
  const copies = tempDir(t);
  for (const dir of [secrets, copies]) chownSync(dir, 65_532, 65_532);
  const [{ source, target }] = holdfast.secrets;
  const token = 'a-token-of-thirty-two-characters';
  writeFileSync(join(secrets, source), token, { mode: 0o400 });
  chownSync(join(secrets, source), 65_532, 65_532);
  const ports = ['ROUTER', 'GATEWAY', 'MEMORY', 'UPTIME', 'CONSOLE'];
  const variables = Object.entries<string>(holdfast.environment).map(([name, value]) => [
    name,
    value.replace(/^\$\{\w+:-(.*)\}$/, '$1'),
  ]);
  const env = {
    ...Object.fromEntries(variables),
    NODE_ENV: 'production',
    ...Object.fromEntries(ports.map((name) => [`HOLDFAST_${name}_PORT`, '0'])),
  };
  const mounts = [
    { from: volume, at: '/var/lib/holdfast' },
    { from: join(secrets, source), at: target, readOnly: true },
    { from: copies, at: '/run/secrets/holdfast' },
  ];
  const argv = [...JSON.parse(entrypoint), ...holdfast.command];
  const child = startOnHost(t, { argv, env, mounts }, { units: [] });
  const [out, err] = [text(child.stdout!), text(child.stderr!)];
  const ended = once(child, 'exit');
  const gone = ended.then(async () => {
    throw new Error(`it ended: ${await out}${await err}`);
  });
  const running = () => readRuntimeFile(join(volume, 'data'));
  await Promise.race([gone, until('it is ready', () => running()?.surfaces.console !== undefined, 100_000)]);
  const { surfaces } = running()!;
  t.deepEqual(Object.keys(surfaces).toSorted(), ['console', 'gateway', 'memory', 'router', 'uptime']);
  const ask = async (path: string, headers = {}) => (await fetch(path, { headers })).status;
  const authorization = `Bearer ${token}`;
  for (const path of [`${surfaces.console!.url}/readyz`, `${surfaces.router!.url}/v1/config/active`]) {
    t.is(await ask(path), 401);
    t.is(await ask(path, { authorization }), 200);
  }
  t.is(await ask(`${surfaces.memory!.url}/collections`), 401);
  const probe = (dataDir: string) =>
    spawnSync(process.execPath, [join(root, JSON.parse(check)[1].replace('/opt/holdfast/', ''))], {
      env: { HOLDFAST_DATA_DIR: dataDir },
      encoding: 'utf8',
    });
  t.like(probe(join(volume, 'data')), { status: 0, stdout: '/livez answers 401\n' });
  t.like(probe(tempDir(t)), { status: 1 });
  const answered = readFileSync(join(volume, 'data/runtime.json'), 'utf8');
  gone.catch(() => {});
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null], await err);
  writeFileSync(join(volume, 'runtime.json'), answered);
  t.is(probe(volume).status, 1, 'nothing answers there any more');
});
