import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import type { ConfigWrite } from '../../../../../src/core/contracts/config-store.ts';
import { openVault } from '../../../../../src/core/host/secrets/vault.ts';
import { asEpochMs } from '../../../../../src/core/kernel/ids.ts';
import { SqliteConfigStore } from '../../../../../src/plugins/router/embedded/store/sqlite-config-store.ts';
import { tempDir } from '../../../../support/temp.ts';

const CANARY = 'CANARY-psk-4711';

async function open(
  t: ExecutionContext,
  dataDir = tempDir(t),
  historyLimit = 500,
): Promise<SqliteConfigStore> {
  const store = await SqliteConfigStore.open({ dataDir, vault: openVault(dataDir), historyLimit });
  t.teardown(() => store.close());
  return store;
}

function write(ncid: string, expected: string | undefined, more: Partial<ConfigWrite> = {}): ConfigWrite {
  const body = JSON.stringify({ ncid, wlan: { psk: CANARY } });
  return {
    ncid,
    expected,
    body,
    at: asEpochMs(1_800_000_000_999),
    op: 'save',
    who: 'test',
    changed: ['wlan.psk'],
    ...more,
  };
}

test.serial('[R32] a stored config is sealed: no file of the store holds a secret of it', async (t) => {
  const dataDir = tempDir(t);
  const store = await open(t, dataDir);
  await store.save(write('n1', undefined));
  for (const suffix of ['', '-wal'])
    t.false(readFileSync(join(dataDir, `router.db${suffix}`)).includes(CANARY));
  await store.close();
  t.false(readFileSync(join(dataDir, 'router.db')).includes(CANARY));
});

test.serial(
  '[R32] a body that was changed in the file, or sealed with another key, is refused',
  async (t) => {
    const dataDir = tempDir(t);
    const store = await open(t, dataDir);
    await store.save(write('n1', undefined));
    await store.close();
    const db = new DatabaseSync(join(dataDir, 'router.db'));
    const body = db.prepare('SELECT body FROM configs').get()?.body as Uint8Array;
    body[40]! ^= 1;
    db.prepare('UPDATE configs SET body = ?').run(body);
    db.close();
    const again = await open(t, dataDir);
    await t.throwsAsync(again.active(), { message: /HF_SECRET_SEALED/ });
    t.is((await again.history(5)).length, 1, 'the list opens no body');
    await t.throwsAsync(again.entry('n1'), { message: /HF_SECRET_SEALED/ });
  },
);

test.serial('a store that another release wrote is refused by name', async (t) => {
  const dataDir = tempDir(t);
  const vault = openVault(dataDir);
  const db = new DatabaseSync(join(dataDir, 'router.db'));
  db.exec('PRAGMA user_version = 9');
  db.close();
  await t.throwsAsync(SqliteConfigStore.open({ dataDir, vault, historyLimit: 5 }), {
    message: /HF_ROUTER_STORE.*format 9, this release knows 1/,
  });
});
