import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { parse } from 'yaml';
import { z } from 'zod';
import { SecretsStoreToken } from '../../../src/core/contracts/secrets-store.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { call, root } from '../../support/cli.ts';
import { ClusterApi } from '../../support/cluster/index.ts';
import { tempDir } from '../../support/temp.ts';
import { fill, rest, startMemory } from '../memory-store/rig.ts';

const SNAPSHOTS = '/collections/memory/snapshots';
const KEY = 'the-key-of-the-store';
const run = promisify(execFile);
const deploy = (file: string) => join(root, 'deploy', file);

function keyFile(dir: string, mode = 0o600): string {
  const file = join(dir, 'api_key');
  writeFileSync(file, KEY);
  chmodSync(file, mode);
  return file;
}

/** The configuration of a command line that speaks to a store elsewhere. */
function configure(dir: string, options = '{}'): void {
  const source = (path: string) => JSON.stringify(join(root, 'src', path));
  writeFileSync(
    join(dir, 'plugins.config.ts'),
    `import { defineConfig } from ${source('index.ts')};
     import { memory } from ${source('plugins/memory/index.ts')};
     export default defineConfig({ plugins: [memory(${options})] });`,
  );
}

test('[B11] the CronJob runs as 65532 from a pinned image, installs nothing, and kubectl takes it and a run of it', async (t) => {
  const text = readFileSync(deploy('memory-snapshot.yaml'), 'utf8');
  const job = parse(text);
  t.is(job.spec.schedule, '30 2 * * *');
  t.false('suspend' in job.spec);
  const pod = job.spec.jobTemplate.spec.template.spec;
  t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: 65_532 });
  const [container, ...others] = pod.containers;
  t.deepEqual(others, []);
  t.regex(container.image, /:[0-9a-f]{7,12}$/);
  t.true(container.securityContext.readOnlyRootFilesystem);
  t.deepEqual(container.command, ['memory-snapshot']);
  const script = readFileSync(deploy('image/memory-snapshot'), 'utf8');
  t.notRegex(script, /\b(apt|apk|npm|npx|pip|curl|wget)\b/);
  const image = readFileSync(deploy('image/Dockerfile'), 'utf8');
  t.regex(image, /^USER 65532:65532$/m);
  t.regex(image, /--platform linux\/amd64,linux\/arm64/);
  const workflow = parse(readFileSync(deploy('image/publish.workflow.yml'), 'utf8'));
  const { with: built } = workflow.jobs.publish.steps.at(-1);
  t.is(built.platforms, 'linux/amd64,linux/arm64');
  t.regex(built.tags, /:\$\{\{ steps.tag.outputs.short \}\}\n.*:latest/);

  const api = await ClusterApi.start(t);
  const dir = tempDir(t);
  api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'agent-memory' } });
  const env = { ...process.env, HOME: dir, KUBECONFIG: api.kubeconfig(dir) };
  const kubectl = async (...args: string[]) => (await run('kubectl', args, { env, timeout: 30_000 })).stdout;
  t.regex(await kubectl('create', '--validate=false', '-f', deploy('memory-snapshot.yaml')), /created/);
  const one = /kubectl (-n agent-memory create job .*)$/m.exec(text)?.[1]?.split(' ') ?? [];
  t.regex(await kubectl(...one), /job.batch\/memory-snapshot-now created/);
  const made = api.store.find('Job', 'memory-snapshot-now', 'agent-memory');
  t.is(made?.spec.template.spec.containers[0].image, container.image);
});

test('[B11] the script of the image takes a snapshot with a key that a pod mounts, and prunes', async (t) => {
  const dir = tempDir(t);
  const store = await startMemory(t, { store: { apiKeyFile: keyFile(tempDir(t)) } });
  const headers = { 'api-key': KEY, 'content-type': 'application/json' };
  const put = { method: 'PUT', headers, body: JSON.stringify({ vectors: { size: 4, distance: 'Cosine' } }) };
  t.is((await fetch(`${store.url}/collections/memory`, put)).status, 200);
  configure(dir);
  symlinkSync(join(root, 'bin', 'holdfast.js'), join(dir, 'holdfast'));
  const env = {
    PATH: `${dir}:${process.env.PATH}`,
    HOME: dir,
    TMPDIR: dir,
    HOLDFAST_DATA_DIR: join(dir, 'data'),
    HOLDFAST_MEMORY_URL: store.url,
    MEMORY_KEY: keyFile(tempDir(t), 0o440),
  };
  const { stdout } = await run(deploy('image/memory-snapshot'), [], { cwd: dir, env, timeout: 60_000 });
  t.regex(stdout, /memory-\d+-[\d-]+\.snapshot/);
  t.regex(stdout, /Nothing is beyond the retention/);
  t.false(stdout.includes(KEY));
  const listed = (await (await fetch(store.url + SNAPSHOTS, { headers })).json()) as any;
  t.is(listed.result.length, 1);
});

test('[B1] without an instance, commands speak to a store elsewhere; pruning then needs --force', async (t) => {
  const store = await startMemory(t);
  await fill(store.url, 3);
  const cwd = tempDir(t);
  configure(cwd, `{ url: '${store.url}', snapshots: { keep: 1 } }`);
  const holdfast = (...words: string[]) => call([...words, '--data-dir', join(cwd, 'data')], { cwd });
  t.regex((await holdfast('backup', 'seed')).out, /16 seeds are in memory, which holds 19 points/);
  for (let made = 0; made < 2; made += 1) t.is((await holdfast('backup', 'snapshot')).code, 0);
  const list = JSON.parse((await holdfast('backup', 'list', '--json')).out);
  t.is(list.backups.length, 2);
  t.false(list.backups[0].recorded);
  const refused = await holdfast('backup', 'prune');
  t.is(refused.code, 1);
  t.regex(refused.err, /HF_MEMORY_UNRECORDED[\s\S]*--dry-run/);
  t.regex((await holdfast('backup', 'prune', '--dry-run')).out, /would delete memory-/);
  t.is((await rest(store.url, 'GET', SNAPSHOTS)).body.result.length, 2);
  t.regex((await holdfast('backup', 'prune', '--force')).out, /deleted memory-/);
  t.deepEqual(
    (await rest(store.url, 'GET', SNAPSHOTS)).body.result.map((one: any) => one.name),
    [list.backups[0].name],
  );
  const gone = await call(['backup', 'list', '--data-dir', join(cwd, 'data')], {
    cwd,
    env: { HOLDFAST_MEMORY_URL: 'http://127.0.0.1:1' },
  });
  t.regex(gone.err, /HF_/);
});

test('[B1] a store behind TLS is believed by its own authority only, and its key may be in the secrets store', async (t) => {
  const dir = tempDir(t);
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const subject = ['-subj', '/CN=store', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-keyout', key, '-out', cert, ...subject],
    ],
    { stdio: 'ignore' },
  );
  const keys: unknown[] = [];
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    keys.push(request.headers['api-key']);
    response.end(JSON.stringify({ result: { count: 7 }, status: 'ok', time: 0 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const secrets = definePlugin({
    name: 'secrets',
    options: z.strictObject({}),
    provides: [SecretsStoreToken],
    register(context) {
      const read = async (path: string, property: string) => `${path}-${property}`;
      context.provide(SecretsStoreToken, () => ({ read }) as never);
    },
  });
  const apiKeyRef = 'memory/qdrant#api_key';
  const trusted = await startMemory(t, { memory: { url, caFile: cert, apiKeyRef }, plugins: [secrets()] });
  t.is(await trusted.stores.live.count('memory'), 7);
  t.deepEqual(keys, ['memory/qdrant-api_key']);
  const stranger = await startMemory(t, { memory: { url } });
  await t.throwsAsync(stranger.stores.live.count('memory'), {
    message: /HF_MEMORY_UNREACHABLE.*self-signed/,
  });
  t.is(keys.length, 1);
});
