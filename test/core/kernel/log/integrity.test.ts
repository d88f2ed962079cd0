import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { chainHash } from '../../../../src/core/kernel/log/chain-hash.ts';
import { readHead, readMark } from '../../../../src/core/kernel/log/head.ts';
import { type IntegrityReport, integritySteps } from '../../../../src/core/kernel/log/integrity.ts';
import { LogWriter } from '../../../../src/core/kernel/log/log-writer.ts';
import { CHECKPOINT, type LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { findLogKey } from '../../../../src/core/kernel/log/signing.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';

const RECORDS = 30;

const record = (seq: number, more: Partial<LogRecord> = {}): LogRecord => ({
  seq,
  at: seq,
  actor: `test.door/${seq % 3}`,
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK', n: seq },
  to: { value: 'closed' },
  effects: [],
  correlation: 'story',
  ...more,
});

/** A log of some records, signed at every tenth and at its clean end. */
async function signed(
  t: ExecutionContext,
  count = RECORDS,
  dir = tempDir(t),
  story = 'story',
): Promise<string> {
  const log = new SqliteLog({ dataDir: dir, signEvery: 10 });
  const first = log.lastSeq() + 1;
  for (let seq = first; seq < first + count; seq += 1) {
    log.append(record(seq, { correlation: story }), { durability: 'sync' });
    if (seq % 5 === 0) await log.whenDurable(seq);
  }
  await log.saveSnapshots([{ actor: 'test.door/1', body: '{"ref":"test.door/1"}' }], () => []);
  await log.close();
  return dir;
}

function verify(dir: string): IntegrityReport {
  const reader = new SqliteReader(dir);
  try {
    const steps = integritySteps(reader, {
      key: findLogKey(dir)?.text,
      head: readHead(dir),
      mark: readMark(dir),
    });
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  } finally {
    reader.close();
  }
}

for (const [what, more, reason] of [
  ['lies before the one before it', { at: 2 }, /its time lies 3 ms before that of the record before/],
  ['names a cause that is yet to come', { cause: 6 }, /its cause, 6, comes later/],
] as const) {
  test(`[C9] a record that ${what} is found, although it is chained and signed`, async (t) => {
    const dir = await signed(t, 5);
    const log = new SqliteLog({ dataDir: dir });
    log.append(record(6, more), { durability: 'sync' });
    await log.close();
    const error = t.throws<HoldfastError>(() => verify(dir), { code: 'HF_LOG_CORRUPT' });
    t.is(error.details.seq, 6);
    t.regex(error.what, reason);
  });
}

test('[C9] saved states that are not those of the digest in the chain are found', async (t) => {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  log.append(record(1), { durability: 'sync' });
  const { seq, digest } = await log.saveSnapshots(
    [{ actor: 'test.door/1', body: '{"ref":"test.door/1"}' }],
    () => [],
  );
  const event = { type: CHECKPOINT.event, seq, digest };
  log.append(record(2, { actor: CHECKPOINT.actor, event }), { durability: 'sync' });
  await log.close();
  t.is(verify(dir).checkpoints, 1);
  tamper(dir, (db) => db.exec(`UPDATE snapshots SET body = '{"ref":"test.door/2"}'`));
  const error = t.throws<HoldfastError>(() => verify(dir), { code: 'HF_LOG_CORRUPT' });
  t.regex(error.what, /the states saved at record 1 are not what its digest says/);
});

test('[C5] a batch that is sent again, because its answer was lost, is written once', async (t) => {
  const dir = await signed(t, 3);
  const writer = new LogWriter({ dataDir: dir, signEvery: 10 });
  const sent = [record(4), record(5)];
  const rows = sent.flatMap((one) => [one.actor, one.correlation, JSON.stringify(one)]);
  for (const _ of [1, 2]) writer.commit({ id: 1, firstSeq: 4, rows, blobs: [] });
  writer.close();
  t.like(verify(dir), { records: 5, last: 5 });
});

test('[C9] a start refuses a tail that was written anew by what is noted beside the key alone', async (t) => {
  const rewrite = (dir: string, from: number) =>
    tamper(dir, (db) => {
      let { hash } = db.prepare('SELECT hash FROM records WHERE seq = ?').get(from - 1) as { hash: string };
      for (const row of db.prepare('SELECT seq, body FROM records WHERE seq >= ? ORDER BY seq').all(from)) {
        const body = String(row.body).replace('KNOCK', 'PUSHED');
        hash = chainHash(hash, body);
        db.prepare('UPDATE records SET body = ?, hash = ? WHERE seq = ?').run(body, hash, Number(row.seq));
      }
      db.prepare('DELETE FROM signatures WHERE seq >= ?').run(from);
    });
  const started = (dir: string) => () => new SqliteLog({ dataDir: dir });
  const secret = (dir: string, name: string) => join(dir, 'secrets', name);

  // Killed behind its last signature: only the mark knows these records.
  const killed = await signed(t, 10);
  const writer = new LogWriter({ dataDir: killed, signEvery: 100 });
  const sent = [record(11), record(12)];
  const rows = sent.flatMap((one) => [one.actor, one.correlation, JSON.stringify(one)]);
  writer.commit({ id: 1, firstSeq: 11, rows, blobs: [] });
  rewrite(killed, 11);
  t.regex(t.throws<HoldfastError>(started(killed)).what, /record 12 is not the one that was acknowledged/);

  // A power cut may have torn the mark: then only the head knows.
  const cut = await signed(t, 10);
  rmSync(secret(cut, 'log-mark'));
  rewrite(cut, 5);
  t.regex(t.throws<HoldfastError>(started(cut)).what, /record 10 is not the one that was signed/);
});

test('[C9,C10] a log that begins later than it was signed to begin lost records, and was not pruned', async (t) => {
  const dir = await signed(t, 10);
  const log = new SqliteLog({ dataDir: dir });
  await log.prune(5, []);
  await log.close();
  t.like(verify(dir), { first: 6, last: 10 });
  tamper(dir, (db) => db.exec(`UPDATE links SET signature = '${'A'.repeat(86)}'`));
  const error = t.throws<HoldfastError>(() => verify(dir), { code: 'HF_LOG_CORRUPT' });
  t.regex(error.what, /no signature says that they were archived/);
});

/** Changes the database as somebody does who has it, and not the key. */
function tamper(dir: string, change: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(join(dir, 'log.db'));
  change(db);
  db.close();
}

/** Computes the hashes of all records from one on anew. */
function rehash(db: DatabaseSync, from: number): void {
  let previous =
    (db.prepare('SELECT hash FROM records WHERE seq < ? ORDER BY seq DESC').get(from)?.hash as string) ??
    '0'.repeat(64);
  for (const row of db.prepare('SELECT seq, body FROM records WHERE seq >= ? ORDER BY seq').all(from)) {
    previous = chainHash(previous, row.body as string);
    db.prepare('UPDATE records SET hash = ? WHERE seq = ?').run(previous, row.seq as number);
  }
}

const badSeq = (error: unknown): number | undefined =>
  error instanceof HoldfastError && error.code === 'HF_LOG_CORRUPT' ? Number(error.details.seq) : undefined;

test('[C9] a log is signed every so many records and at its end; the key is its owner’s alone', async (t) => {
  const dir = await signed(t, 33);
  const report = verify(dir);
  t.like(report, { records: 33, signed: { upTo: 33 } });
  t.true((report.signed?.signatures ?? 0) >= 4);
  t.is(statSync(join(dir, 'secrets/log-signing-key')).mode & 0o777, 0o600);
  await signed(t, 3, dir);
  t.like(verify(dir), { records: 36, signed: { upTo: 36, key: report.signed?.key } });
});

type Damage = {
  readonly kind: 'edit' | 'delete' | 'swap' | 'cut' | 'rewrite' | 'strip';
  readonly seq: number;
};

const damage: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom(
    'edit' as const,
    'delete' as const,
    'swap' as const,
    'cut' as const,
    'rewrite' as const,
    'strip' as const,
  ),
  seq: fc.integer({ min: 1, max: RECORDS - 1 }),
});

function apply(db: DatabaseSync, { kind, seq }: Damage): void {
  const run = (sql: string, ...values: (string | number)[]) => db.prepare(sql).run(...values);
  const edit = () => run(`UPDATE records SET body = replace(body, 'KNOCK', 'BREAK') WHERE seq = ?`, seq);
  if (kind === 'edit') edit();
  if (kind === 'delete') run('DELETE FROM records WHERE seq = ?', seq);
  if (kind === 'swap') {
    const [a, b] = [seq, seq + 1].map(
      (at) => db.prepare('SELECT body FROM records WHERE seq = ?').get(at)?.body,
    );
    run('UPDATE records SET body = ? WHERE seq = ?', b as string, seq);
    run('UPDATE records SET body = ? WHERE seq = ?', a as string, seq + 1);
  }
  if (kind === 'cut') {
    for (const table of ['records', 'signatures', 'checkpoints', 'snapshots'])
      run(`DELETE FROM ${table} WHERE seq > ?`, seq);
  }
  if (kind === 'rewrite' || kind === 'strip') {
    edit();
    rehash(db, seq);
    if (kind === 'strip') run('DELETE FROM signatures WHERE seq >= ?', seq);
  }
}

test('[C9] any edit, deletion, swap, cut or rewritten suffix is found, named, and refused by a start', async (t) => {
  t.timeout(180_000);
  const whole = await signed(t);
  const copies = tempDir(t);
  let copy = 0;
  await fc.assert(
    fc.asyncProperty(damage, async (done) => {
      copy += 1;
      const dir = join(copies, String(copy));
      cpSync(whole, dir, { recursive: true });
      tamper(dir, (db) => apply(db, done));
      const { kind, seq } = done;
      const found = badSeq(t.throws(() => verify(dir)));
      const signedBefore = Math.floor((seq - 1) / 10) * 10;
      if (kind === 'cut') t.is(found, seq + 1);
      // Who computes the hashes anew betrays the place no closer than to the signatures on both sides.
      else if (kind === 'rewrite' || kind === 'strip')
        t.true(found === signedBefore + 1 || found === seq, `${found}`);
      else t.is(found, seq);
      // A start looks at what was signed last and what came after: `log verify` at the rest.
      if (['cut', 'rewrite', 'strip'].includes(kind)) {
        t.throws(() => new SqliteLog({ dataDir: dir }), { code: 'HF_LOG_UNTRUSTED' });
      }
      rmSync(dir, { recursive: true });
    }),
    { numRuns: runs(60) },
  );
});

test('[C9] a start refuses a changed tail, changed states, taken-away records and another log', async (t) => {
  const whole = await signed(t);
  const cases: Record<string, [change: (db: DatabaseSync) => void, code: string]> = {
    'the newest record': [
      (db) => db.exec(`UPDATE records SET body = replace(body, 'KNOCK', 'BREAK') WHERE seq = ${RECORDS}`),
      'HF_LOG_CORRUPT',
    ],
    'a saved state': [
      (db) => db.exec(`UPDATE snapshots SET body = '{"ref":"test.door/2"}'`),
      'HF_LOG_UNTRUSTED',
    ],
    'a checkpoint made up': [
      (db) => db.exec(`UPDATE checkpoints SET digest = '${'0'.repeat(64)}'`),
      'HF_LOG_UNTRUSTED',
    ],
    'its first records': [(db) => db.exec('DELETE FROM records WHERE seq < 8'), 'HF_LOG_UNTRUSTED'],
  };
  for (const [name, [change, code]] of Object.entries(cases)) {
    const dir = join(tempDir(t), 'copy');
    cpSync(whole, dir, { recursive: true });
    tamper(dir, change);
    t.throws(() => new SqliteLog({ dataDir: dir }), { code }, name);
    if (name === 'its first records') t.is(badSeq(t.throws(() => verify(dir))), 1);
  }
  const other = join(tempDir(t), 'other');
  cpSync(whole, other, { recursive: true });
  copyFileSync(join(await signed(t, 40, tempDir(t), 'another'), 'log.db'), join(other, 'log.db'));
  t.throws(() => new SqliteLog({ dataDir: other }), { code: 'HF_LOG_UNTRUSTED' });
  rmSync(join(other, 'secrets/log-signing-key'));
  t.throws(() => new SqliteLog({ dataDir: other }), { code: 'HF_CONFIG_SECRET_INVALID' });
});

test('[C9] who wants to go on with an older copy of a log says so by taking the noted head away', async (t) => {
  const dir = await signed(t);
  const older = join(tempDir(t), 'older');
  cpSync(dir, older, { recursive: true });
  await signed(t, 10, dir);
  copyFileSync(join(older, 'log.db'), join(dir, 'log.db'));
  for (const rest of ['log.db-wal', 'log.db-shm']) rmSync(join(dir, rest), { force: true });
  t.throws(() => new SqliteLog({ dataDir: dir }), { code: 'HF_LOG_UNTRUSTED' });
  for (const note of ['log-head', 'log-mark']) rmSync(join(dir, 'secrets', note));
  await signed(t, 1, dir);
  t.like(verify(dir), { records: RECORDS + 1 });
});

test('[C9,C6] signatures travel with an export, and the expected key decides about a carried file', async (t) => {
  const dir = await signed(t);
  const cwd = tempDir(t);
  const file = join(cwd, 'carried.jsonl');
  await call(['log', 'export', dir, '--out', file], { cwd });
  const own = await call(['log', 'verify', dir], { cwd });
  const [, key = ''] = /Signed by (ed25519:\S+) up to record 30 /.exec(own.out) ?? [];
  const seen = await call(['log', 'verify', file], { cwd });
  t.regex(seen.err, /Nothing here confirms that key/);
  const expected = await call(['log', 'verify', file, '--public-key', key], { cwd });
  t.is(expected.code, 0, expected.err);
  t.is(expected.err, '');

  const another =
    /Signed by (\S+)/.exec((await call(['log', 'verify', await signed(t)], { cwd })).out)?.[1] ?? '';
  t.regex((await call(['log', 'verify', file, '--public-key', another], { cwd })).err, /^HF_LOG_UNSIGNED/);
  t.is((await call(['log', 'verify', file, '--public-key', 'x'], { cwd })).code, 2);

  // Somebody writes the end anew, with hashes that fit, and leaves the signatures out that do not.
  const forged = join(cwd, 'forged');
  mkdirSync(forged);
  copyFileSync(join(dir, 'log.db'), join(forged, 'log.db'));
  tamper(forged, (db) => apply(db, { kind: 'strip', seq: 25 }));
  await call(['log', 'export', forged, '--out', join(cwd, 'forged.jsonl')], { cwd });
  const found = await call(['log', 'verify', join(cwd, 'forged.jsonl'), '--public-key', key], { cwd });
  t.regex(found.err, /^HF_LOG_UNSIGNED\n {2}Records 21 to 30 /);

  // An import keeps them, and the folder's own key vouches from then on.
  const copy = join(cwd, 'copy');
  t.is((await call(['log', 'import', file, '--data-dir', copy], { cwd })).code, 0);
  await signed(t, 5, copy);
  t.regex((await call(['log', 'verify', copy], { cwd })).out, /Signed by ed25519:\S+ up to record 35 /);
  t.false(readFileSync(join(copy, 'secrets/log-head'), 'utf8').includes(key));
});

test('[C9] a head that is torn is said as that', async (t) => {
  const dir = await signed(t);
  const head = JSON.parse(readFileSync(join(dir, 'secrets/log-head'), 'utf8'));
  const forged = { ...head, signature: `${head.signature[0] === 'A' ? 'B' : 'A'}${head.signature.slice(1)}` };
  writeFileSync(join(dir, 'secrets/log-head'), JSON.stringify(forged));
  const message = /log-head was not signed with the key/;
  t.throws(() => new SqliteLog({ dataDir: dir }), { code: 'HF_LOG_UNTRUSTED', message });
  writeFileSync(join(dir, 'secrets/log-head'), '{');
  t.throws(() => new SqliteLog({ dataDir: dir }), { code: 'HF_LOG_UNTRUSTED', message: /log-head/ });
});

test('[C9] a rewritten log whose signatures name the key without being made by it is found', async (t) => {
  const dir = await signed(t);
  const key = findLogKey(dir)?.text;
  tamper(dir, (db) => {
    db.exec(`UPDATE records SET body = replace(body, 'KNOCK', 'BREAK') WHERE seq = 3`);
    rehash(db, 3);
    db.exec('DELETE FROM checkpoints; DELETE FROM snapshots');
    db.exec('UPDATE signatures SET hash = (SELECT hash FROM records WHERE records.seq = signatures.seq)');
  });
  for (const noted of ['log-head', 'log-mark']) rmSync(join(dir, 'secrets', noted), { force: true });
  const error = t.throws<HoldfastError>(() => verify(dir), { code: 'HF_LOG_CORRUPT' });
  t.is(findLogKey(dir)?.text, key, 'the key is the same');
  t.regex(error.message, /its signature is not one of the key it names/);
  t.is(badSeq(error), 10);
});
