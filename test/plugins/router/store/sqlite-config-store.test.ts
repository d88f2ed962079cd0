import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import type { ConfigWrite } from '../../../../src/core/adapters/config-store.ts';
import { asEpochMs } from '../../../../src/core/ids.ts';
import { openVault } from '../../../../src/core/secrets/index.ts';
import { SqliteConfigStore } from '../../../../src/plugins/router/store/sqlite-config-store.ts';
import { tempDir } from '../../../support/temp.ts';

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

test.serial('[R2] what was saved is read back as it was, also after reopening', async (t) => {
  const dataDir = tempDir(t);
  const store = await open(t, dataDir);
  t.is(await store.active(), undefined);
  t.true(await store.save(write('n1', undefined)));
  t.is((await store.active())?.body, write('n1', undefined).body);
  await store.close();
  const again = await open(t, dataDir);
  t.like(await again.active(), { ncid: 'n1', body: write('n1', undefined).body });
});

test.serial('[R3] a save that expects another ncid writes nothing', async (t) => {
  const store = await open(t);
  await store.save(write('n1', undefined));
  t.false(await store.save(write('n2', 'n0')));
  t.false(await store.save(write('n2', undefined)));
  t.is((await store.active())?.ncid, 'n1');
  t.is((await store.history(10)).length, 1);
});

test.serial('[R3] of two stores on one file that race, one wins each ncid', async (t) => {
  const dataDir = tempDir(t);
  const [a, b] = [await open(t, dataDir), await open(t, dataDir)];
  await a.save(write('n0', undefined));
  for (let i = 1; i <= 20; i += 1) {
    const expected = (await a.active())?.ncid;
    const saved = await Promise.all([a.save(write(`a${i}`, expected)), b.save(write(`b${i}`, expected))]);
    t.deepEqual(saved.toSorted(), [false, true]);
    t.is((await a.active())?.ncid, saved[0] ? `a${i}` : `b${i}`);
    t.deepEqual(await a.active(), await b.active());
  }
});

test.serial(
  '[R13] history is newest first, scored in epoch seconds, without the seed, and trimmed',
  async (t) => {
    const store = await open(t, tempDir(t), 3);
    await store.save(write('n0', undefined, { op: 'seed' }));
    for (let i = 1; i <= 5; i += 1) await store.save(write(`n${i}`, `n${i - 1}`, { op: 'append' }));
    const history = await store.history(10);
    t.deepEqual(
      history.map(({ ncid, score, op }) => [ncid, score, op]),
      ['n5', 'n4', 'n3'].map((ncid) => [ncid, 1_800_000_000, 'append']),
    );
    t.is(history[0]?.body, write('n5', 'n4').body);
    t.is((await store.history(1)).length, 1);
  },
);

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
  },
);

test.serial('[R2] a store that another release wrote is refused by name', async (t) => {
  const dataDir = tempDir(t);
  const db = new DatabaseSync(join(dataDir, 'router.db'));
  db.exec('PRAGMA user_version = 9');
  db.close();
  await t.throwsAsync(SqliteConfigStore.open({ dataDir, vault: openVault(dataDir), historyLimit: 5 }), {
    message: /HF_ROUTER_STORE.*format 9, this release knows 1/,
  });
});

test.serial('[R2] a closed store answers with an error, not with silence', async (t) => {
  const store = await open(t);
  await store.close();
  await t.throwsAsync(store.active(), { message: /HF_ROUTER_STORE/ });
  await t.throwsAsync(store.save(write('n1', undefined)), { message: /HF_ROUTER_STORE/ });
});
