import { randomBytes } from 'node:crypto';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { openVault } from '../../../../src/core/host/secrets/vault.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';

const record: LogRecord = {
  seq: 1,
  at: 1,
  actor: 'test.door/front',
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK' },
  to: { value: 'closed' },
  effects: [],
  correlation: 'story',
};

const KEYS = ['fp_00000000000000000000000000000001', 'fp_00000000000000000000000000000002'] as const;

/** A log with two sealed bodies of several pages each. */
function sealedBodies(t: ExecutionContext) {
  const dir = tempDir(t);
  const vault = openVault(dir);
  const log = new SqliteLog({ dataDir: dir });
  t.teardown(() => log.close());
  const [one, two] = KEYS.map((key) => vault.seal(key.repeat(1_000), 'test'));
  const blobs = new Map([
    [KEYS[0], one as Uint8Array],
    [KEYS[1], two as Uint8Array],
  ]);
  log.append(record, { durability: 'sync', blobs });
  return { dir, vault, log, one: one as Uint8Array, two: two as Uint8Array };
}

/** A body as it lies in the database: sealed once more, under its own key. */
function stored(dir: string, key: string): Uint8Array {
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true });
  try {
    return db.prepare('SELECT body FROM blobs WHERE key = ?').get(key)?.body as Uint8Array;
  } finally {
    db.close();
  }
}

/** The data key of a body as it lies among the keys, to look for it there when it has been dropped. */
function dataKey(dir: string, name: string): { isThere(): boolean } {
  const keys = () => readFileSync(join(dir, 'secrets', 'body-keys'));
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true });
  const id = db.prepare('SELECT sealed_by FROM blobs WHERE key = ?').get(name)?.sealed_by as string;
  db.close();
  const at = keys().indexOf(Buffer.from(id, 'hex'));
  const key = Buffer.from(keys().subarray(at + 16, at + 48));
  return { isThere: () => keys().includes(key) };
}

/** Whether any 32 bytes of a body, wherever they begin, are in a file of the folder. */
function holds(dir: string, body: Uint8Array): boolean {
  const probes = Array.from({ length: 100 }, (_, at) => Buffer.from(body.subarray(at * 300, at * 300 + 32)));
  return ['log.db', 'log.db-wal'].some((name) => {
    let bytes = Buffer.alloc(0);
    try {
      bytes = readFileSync(join(dir, name));
    } catch {
      // The write-ahead log goes with the last connection.
    }
    return probes.some((probe) => bytes.includes(probe));
  });
}

test('[C6,C9] a shredded body is in no file of a running log, its chain is as it was, and who needs it hears a code', async (t) => {
  const { dir, vault, log, one } = sealedBodies(t);
  await log.whenDurable(1);
  t.false(holds(dir, one), 'it is sealed under a key of its own');
  const [first, second] = KEYS.map((key) => stored(dir, key)) as [Uint8Array, Uint8Array];
  t.true(holds(dir, first));
  await log.shred([KEYS[0]]);
  t.false(holds(dir, first));
  t.throws(() => log.blob(KEYS[0]), { code: 'HF_LOG_SHREDDED' });
  t.is(vault.open(log.blob(KEYS[1]) ?? new Uint8Array(), 'test'), KEYS[1].repeat(1_000));
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
  log.append({ ...record, seq: 2 }, { durability: 'sync', blobs: new Map([[KEYS[0], one]]) });
  await log.whenDurable(2);
  t.truthy(log.blob(KEYS[0]), 'the same config posted again is a new body');
  t.true(holds(dir, second));
});

test('[C6] a body that nothing needs leaves nothing behind in the database', async (t) => {
  const { dir, log } = sealedBodies(t);
  await log.whenDurable(1);
  const body = stored(dir, KEYS[0]);
  const [first, second] = KEYS.map((key) => dataKey(dir, key));
  t.true(first?.isThere());
  await log.saveSnapshots([], () => [KEYS[1]]);
  await log.close();
  t.false(holds(dir, body));
  t.false(first?.isThere());
  t.true(second?.isThere());
});

test('[C6,R32] copies of the database made before a body was shredded cannot be read with the folder as it is after', async (t) => {
  const { dir, log, one, two } = sealedBodies(t);
  const [before, again] = [tempDir(t), tempDir(t)];
  await log.whenDurable(1);
  const copy = (to: string) => {
    const db = new DatabaseSync(join(dir, 'log.db'));
    db.exec(`VACUUM INTO '${join(to, 'log.db')}'`);
    db.close();
  };
  copy(before);
  const first = dataKey(dir, KEYS[0]);
  // The same config is posted again, sealed anew: the copy's body has another key.
  log.append({ ...record, seq: 2 }, { durability: 'sync', blobs: new Map([[KEYS[0], one]]) });
  await log.whenDurable(2);
  copy(again);
  const second = dataKey(dir, KEYS[0]);
  await log.shred([KEYS[0]]);
  await log.close();
  t.false(first.isThere());
  t.false(second.isThere());
  for (const old of [before, again]) {
    t.false(holds(old, one));
    t.false(holds(old, two));
    cpSync(join(dir, 'secrets'), join(old, 'secrets'), { recursive: true });
    const reader = new SqliteReader(old);
    t.throws(() => reader.blob(KEYS[0]), { code: 'HF_LOG_SHREDDED' });
    t.deepEqual(Buffer.from(reader.blob(KEYS[1]) ?? []), Buffer.from(two));
    reader.close();
  }
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
});

test('[C6] bodies that a release without data keys stored are read, and swept and shredded as all others', async (t) => {
  const { dir, log, one, two } = sealedBodies(t);
  await log.close();
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec('ALTER TABLE blobs DROP COLUMN sealed_by');
  for (const [key, body] of [[KEYS[0], one] as const, [KEYS[1], two] as const]) {
    db.prepare('UPDATE blobs SET body = ? WHERE key = ?').run(body, key);
  }
  db.close();
  rmSync(join(dir, 'secrets', 'body-keys'));
  const reader = new SqliteReader(dir);
  t.deepEqual(Buffer.from(reader.blob(KEYS[0]) ?? []), Buffer.from(one));
  reader.close();
  const later = new SqliteLog({ dataDir: dir });
  t.deepEqual(Buffer.from(later.blob(KEYS[1]) ?? []), Buffer.from(two));
  await later.shred([KEYS[0]]);
  t.throws(() => later.blob(KEYS[0]), { code: 'HF_LOG_SHREDDED' });
  await later.close();
  t.false(holds(dir, one));
});

test('[C6] a body that lost its key or was changed is told with a code; keys that no record needs go at a checkpoint', async (t) => {
  const { dir, log } = sealedBodies(t);
  await log.close();
  const keys = join(dir, 'secrets', 'body-keys');
  const kept = readFileSync(keys);
  rmSync(keys);
  const read = (key: string) => {
    const reader = new SqliteReader(dir);
    try {
      return reader.blob(key);
    } finally {
      reader.close();
    }
  };
  t.throws(() => read(KEYS[0]), { code: 'HF_LOG_SHREDDED', message: /a time that is not known/ });
  // A kill left keys whose record was never written, and half a slot.
  const orphans = randomBytes(4_096 + 17);
  writeFileSync(keys, Buffer.concat([kept, orphans]), { mode: 0o600 });
  const isOrphanThere = () => readFileSync(keys).includes(orphans.subarray(0, 32));
  t.true(isOrphanThere());
  t.truthy(read(KEYS[0]));
  const later = new SqliteLog({ dataDir: dir });
  const blobs = new Map([['fp_three', Buffer.alloc(100, 3)]]);
  later.append({ ...record, seq: 2 }, { durability: 'sync', blobs });
  await later.saveSnapshots([], () => [...KEYS, 'fp_three']);
  t.deepEqual(Buffer.from(later.blob('fp_three') ?? []), Buffer.alloc(100, 3));
  await later.close();
  t.false(isOrphanThere());
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec(`UPDATE blobs SET body = zeroblob(200) WHERE key = '${KEYS[0]}'`);
  db.exec(`UPDATE blobs SET body = x'00' WHERE key = '${KEYS[1]}'`);
  db.close();
  for (const key of KEYS) t.throws(() => read(key), { code: 'HF_LOG_DAMAGED' });
});

test('[C6] holdfast log shred takes one body, or all of an age', async (t) => {
  const { dir, log } = sealedBodies(t);
  await log.close();
  const [one, two] = KEYS.map((key) => stored(dir, key)) as [Uint8Array, Uint8Array];
  const shred = (...words: string[]) => call(['log', 'shred', ...words, '--data-dir', dir], { cwd: dir });
  t.regex((await shred(KEYS[0])).out, /^fp_0+1 can no longer be read\./);
  t.false(holds(dir, one));
  t.true(holds(dir, two));
  t.regex((await shred(KEYS[0])).err, /^HF_LOG_SHREDDED/);
  t.regex((await shred('fp_none')).err, /^HF_LOG_BODY_UNKNOWN/);
  t.is((await shred()).code, 2);
  t.regex((await shred('--older-than', '1h')).out, /^No stored config is that old/);
  t.deepEqual(JSON.parse((await shred('--older-than', '0s', '--json')).out), { shredded: [KEYS[1]] });
  t.false(holds(dir, two));
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  t.throws(() => reader.blob(KEYS[1]), { code: 'HF_LOG_SHREDDED' });
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
});
