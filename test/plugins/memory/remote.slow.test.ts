import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { SecretsStoreToken } from '../../../src/core/contracts/secrets-store.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { call, root } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { fill, rest, startMemory } from '../memory-store/rig.ts';

const SNAPSHOTS = '/collections/memory/snapshots';

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

test('[B1] without an instance, commands speak to a store elsewhere; pruning then needs --force', async (t) => {
  const store = await startMemory(t);
  await fill(store.url, 3);
  const cwd = tempDir(t);
  configure(cwd, `{ url: '${store.url}', snapshots: { keep: 1 } }`);
  const holdfast = (...words: string[]) => call([...words, '--data-dir', join(cwd, 'data')], { cwd });
  t.regex((await holdfast('backup', 'seed')).out, /3 seeds are in memory, which holds 3 points/);
  t.regex((await holdfast('backup', 'seed', '--synthetic')).out, /16 seeds are in memory, which holds 19/);
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

test('a store behind TLS is believed by its own authority only, and its key may be in the secrets store', async (t) => {
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
