import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { type LogRecord, SqliteLog, SqliteReader } from '../../../src/core/log/index.ts';
import { openVault } from '../../../src/core/secrets/index.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';

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
  const { dir, vault, log, one, two } = sealedBodies(t);
  await log.whenDurable(1);
  t.true(holds(dir, one));
  await log.shred([KEYS[0]]);
  t.false(holds(dir, one));
  t.throws(() => log.blob(KEYS[0]), { code: 'HF_LOG_SHREDDED' });
  t.is(vault.open(log.blob(KEYS[1]) ?? new Uint8Array(), 'test'), KEYS[1].repeat(1_000));
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
  log.append({ ...record, seq: 2 }, { durability: 'sync', blobs: new Map([[KEYS[0], one]]) });
  await log.whenDurable(2);
  t.truthy(log.blob(KEYS[0]), 'the same config posted again is a new body');
  t.true(holds(dir, two) || log.blob(KEYS[1]) !== undefined);
});

test('[C6] a body that nothing needs leaves nothing behind in the database', async (t) => {
  const { dir, log, one } = sealedBodies(t);
  await log.whenDurable(1);
  await log.saveSnapshots([], () => [KEYS[1]]);
  await log.close();
  t.false(holds(dir, one));
});

test('[C6] holdfast log shred takes one body, or all of an age', async (t) => {
  const { dir, log, one, two } = sealedBodies(t);
  await log.close();
  const shred = (...words: string[]) => call(['log', 'shred', ...words, '--data-dir', dir], { cwd: dir });
  t.regex((await shred(KEYS[0])).out, /^fp_0+1 is unreadable from now on\./);
  t.false(holds(dir, one));
  t.true(holds(dir, two));
  t.regex((await shred(KEYS[0])).err, /^HF_LOG_SHREDDED/);
  t.regex((await shred('fp_none')).err, /^HF_LOG_BODY_UNKNOWN/);
  t.is((await shred()).code, 2);
  t.regex((await shred('--older-than', '1h')).out, /^No body is that old/);
  t.deepEqual(JSON.parse((await shred('--older-than', '0s', '--json')).out), { shredded: [KEYS[1]] });
  t.false(holds(dir, two));
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  t.throws(() => reader.blob(KEYS[1]), { code: 'HF_LOG_SHREDDED' });
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
});
