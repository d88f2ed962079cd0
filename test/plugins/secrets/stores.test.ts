import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { SecretsStore } from '../../../src/core/contracts/secrets-store.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { environmentStore, folderStore, secretsKv } from '../../../src/plugins/secrets/index.ts';
import { kvStore } from '../../../src/plugins/secrets/kv-store.ts';
import { KvStandIn } from '../../support/kv-server.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';

const { signal } = new AbortController();
const path = 'home/observability';

async function kv(t: Scope, options: { ca?: string; server?: KvStandIn; deadlineMs?: number } = {}) {
  const { server = await KvStandIn.open(t), ca, deadlineMs = 5_000 } = options;
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, `${server.token}\n`, { mode: 0o600 });
  const store = kvStore({ url: server.url, tokenFile, mount: 'secret', ca, deadlineMs });
  t.teardown(() => store.close());
  return { server, store, tokenFile };
}

const stores: Record<string, (t: Scope) => Promise<SecretsStore>> = {
  folder: async (t) => folderStore(join(tempDir(t), 'store')),
  kv: async (t) => (await kv(t)).store,
};

for (const [name, open] of Object.entries(stores)) {
  test(`[O25] ${name}: what is written is read, described without its value, and leaves the others as they are`, async (t) => {
    const store = await open(t);
    const missing = await t.throwsAsync(store.read(path, 'a', signal));
    t.true(isCoded(missing, 'HF_CONFIG_SECRET_MISSING'));
    t.false((await store.describe?.(path, 'a', signal))?.exists);
    await store.write?.(path, 'a', 'value-one', signal);
    await store.write?.(path, 'b', 'value-two', signal);
    await store.write?.(path, 'a', 'value-three', signal);
    t.is(await store.read(path, 'a', signal), 'value-three');
    t.is(await store.read(path, 'b', signal), 'value-two');
    t.true(isCoded(await t.throwsAsync(store.read(path, 'toString', signal))));
    const described = await store.describe?.(path, 'a', signal);
    t.true(described?.exists);
    t.is(typeof described?.changedAt, 'number');
    t.true(described?.place.includes(path));
    t.false(JSON.stringify(described).includes('value-'));
  });
}

test('[O25] folder: a written file has mode 0600 whatever was there, and a folder open to others is refused', async (t) => {
  const folder = tempDir(t);
  const store = folderStore(folder);
  await store.write?.('a', 'b', 'first', signal);
  chmodSync(join(folder, 'a', 'b'), 0o644);
  await store.write?.('a', 'b', 'second', signal);
  t.is(statSync(join(folder, 'a', 'b')).mode & 0o777, 0o600);
  chmodSync(join(folder, 'a'), 0o777);
  const error = await t.throwsAsync(async () => store.write?.('a', 'b', 'third', signal));
  t.true(isCoded(error, 'HF_CONFIG_SECRET_FOLDER'));
  t.is(readFileSync(join(folder, 'a', 'b'), 'utf8'), 'second\n');
});

test('[O25] kv: a patch leaves the other properties to the server, also when the policy or the server knows none', async (t) => {
  const { server, store } = await kv(t);
  for (const prepare of [
    () => {},
    () => {
      server.rights.delete('patch');
    },
    () => {
      server.knowsPatch = false;
    },
  ]) {
    prepare();
    server.put(path, { keep: { deep: [1] }, key: 'old' });
    await store.write?.(path, 'key', 'new', signal);
    t.deepEqual(server.data(path), { keep: { deep: [1] }, key: 'new' });
  }
});

test('[O25] kv: a writer that comes between is not overwritten, and one that never stops is named', async (t) => {
  const { server, store } = await kv(t);
  server.put(path, { theirs: 'old' });
  server.beforeWrite = () => {
    server.beforeWrite = undefined;
    server.put(path, { theirs: 'new' });
  };
  await store.write?.(path, 'key', 'ours', signal);
  t.deepEqual(server.data(path), { theirs: 'new', key: 'ours' });
  server.beforeWrite = () => server.put(path, { theirs: 'again' });
  const error = await t.throwsAsync(async () => store.write?.(path, 'key', 'lost', signal));
  t.true(isCoded(error, 'HF_SECRETS_CONFLICT'));
});

test('[O25] kv: a deleted secret is missing, and can be written again', async (t) => {
  const { server, store } = await kv(t);
  server.put(path, { key: 'old' });
  server.put(path, null);
  t.false((await store.describe?.(path, 'key', signal))?.exists);
  await store.write?.(path, 'key', 'new', signal);
  t.is(await store.read(path, 'key', signal), 'new');
});

test('kv: refusals, a sealed server and silence are told apart, and no token is in their texts', async (t) => {
  const { server, store, tokenFile } = await kv(t, { deadlineMs: 1_000 });
  const failed = async (run: () => Promise<unknown>) => {
    const error = await t.throwsAsync(async () => void (await run()));
    t.true(isCoded(error));
    t.false(String(error?.message).includes(server.token));
    return String(error?.message);
  };
  server.put(path, { key: 'x' });
  server.rights = new Set(['read']);
  t.regex(await failed(async () => store.write?.(path, 'key', 'y', signal)), /HF_SECRETS_REFUSED.*write/);
  server.rights.clear();
  t.regex(await failed(() => store.read(path, 'key', signal)), /HF_SECRETS_REFUSED.*read/);
  server.failures.push(503);
  t.regex(await failed(() => store.read(path, 'key', signal)), /UNREACHABLE.*sealed/);
  chmodSync(tokenFile, 0o644);
  t.regex(await failed(() => store.read(path, 'key', signal)), /HF_CONFIG_SECRET_MODE/);
  chmodSync(tokenFile, 0o600);
  const closed = await KvStandIn.open(t);
  const { store: away } = await kv(t, { server: Object.assign(closed, { url: 'http://127.0.0.1:9' }) });
  t.regex(await failed(() => away.read(path, 'key', signal)), /UNREACHABLE.*ECONNREFUSED/);
});

test('kv: TLS is checked against the given authority', async (t) => {
  const dir = tempDir(t);
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', keyFile, '-out', certFile, '-days', '2', '-subj', '/CN=kv'],
      ...['-addext', 'subjectAltName=IP:127.0.0.1'],
    ],
    { stdio: 'ignore' },
  );
  const [key, cert] = [readFileSync(keyFile, 'utf8'), readFileSync(certFile, 'utf8')];
  const server = await KvStandIn.open(t, { key, cert });
  server.put(path, { key: 'x' });
  const { store } = await kv(t, { server, ca: cert });
  t.is(await store.read(path, 'key', signal), 'x');
  const { store: strange } = await kv(t, { server });
  const error = await t.throwsAsync(strange.read(path, 'key', signal));
  t.true(isCoded(error, 'HF_SECRETS_UNREACHABLE'));
});

test('kv: a token goes to no other machine in plaintext', (t) => {
  const entries = (url: string) => [secretsKv({ url, tokenFile: '/nowhere' })];
  t.notThrows(() => resolveConfig({ plugins: entries('http://127.0.0.1:8200') }, { env: {} }));
  t.notThrows(() => resolveConfig({ plugins: entries('https://vault.example:8200') }, { env: {} }));
  t.throws(() => resolveConfig({ plugins: entries('http://vault.example:8200') }, { env: {} }));
});

test('environment: a secret is a variable, and can only be read', async (t) => {
  const store = environmentStore({ HOLDFAST_SECRET_HOME_OBSERVABILITY_A_KEY: ' v \n' });
  t.is(await store.read(path, 'a-key', signal), 'v');
  t.is(store.write, undefined);
  t.deepEqual(await store.describe?.(path, 'other', signal), {
    exists: false,
    place: 'variable HOLDFAST_SECRET_HOME_OBSERVABILITY_OTHER',
  });
});
