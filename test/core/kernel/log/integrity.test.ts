import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { chainHash } from '../../../../src/core/kernel/log/chain.ts';
import { type IntegrityReport, integritySteps } from '../../../../src/core/kernel/log/integrity.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { findLogKey } from '../../../../src/core/kernel/log/signing.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { readHead, readMark } from '../../../../src/core/kernel/log/trust.ts';
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
  t.timeout(120_000);
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
