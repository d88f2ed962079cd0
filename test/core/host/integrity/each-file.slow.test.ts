import { cpSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { compareFiles, compareWithStop } from '../../../../src/core/host/integrity/compare.ts';
import { filesIn, isLiving, type NotedFile } from '../../../../src/core/host/integrity/files.ts';
import type { Finding } from '../../../../src/core/host/integrity/findings.ts';
import { saveLedger } from '../../../../src/core/host/integrity/ledger.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { findDamage } from '../../../../src/core/kernel/log/damage.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { root, spawnHoldfast } from '../../../support/cli.ts';
import { seeded } from '../../../support/damage.ts';
import { tempDir } from '../../../support/temp.ts';

const OFFSETS = 50;

const PORTS = ['ROUTER', 'GATEWAY', 'CONSOLE', 'MEMORY', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME'];

/** The shipped configuration, run until it has written to every store. @returns how it ends, and where it is reached */
async function shipped(t: ExecutionContext, dataDir: string) {
  const env = Object.fromEntries(PORTS.map((name) => [`HOLDFAST_${name}_PORT`, '0']));
  const config = join(root, 'plugins.config.ts');
  const instance = spawnHoldfast(t, ['start', '--data-dir', dataDir, '--config', config], { cwd: root, env });
  await instance.see(/Holdfast is ready/);
  const url = async (surface: string) =>
    (await instance.see(new RegExp(`^  ${surface} +(http\\S+)`, 'm')))[1] ?? '';
  const post = async (address: string, body: unknown, method = 'POST') => {
    const answer = await fetch(address, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    t.true(answer.status < 300, `${address}: ${answer.status} ${await answer.text()}`);
  };
  const router = await url('router');
  const memory = await url('memory');
  for (let round = 0; round < 5; round += 1) {
    const active = await (await fetch(`${router}/v1/config/active`)).json();
    await post(`${router}/v1/config/set`, active);
  }
  await post(`${memory}/collections/notes`, { vectors: { size: 4, distance: 'Cosine' } }, 'PUT');
  const points = Array.from({ length: 50 }, (_, id) => ({
    id,
    vector: [id, 1, 2, 3],
    payload: { text: `note ${id}` },
  }));
  await post(`${memory}/collections/notes/points?wait=true`, { points }, 'PUT');
  await delay(8_000); // the first check, telemetry and heartbeats
  return instance;
}

/** Flips one bit and gives back what was there. */
function flip(file: string, offset: number, bit: number): () => void {
  const { atimeMs, mtimeMs } = statSync(file);
  const before = readFileSync(file);
  const bytes = Buffer.from(before);
  bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
  writeFileSync(file, bytes);
  return () => {
    writeFileSync(file, before);
    utimesSync(file, atimeMs / 1_000, mtimeMs / 1_000);
  };
}

test('[C9] a flipped bit anywhere in any file of a folder that was stopped is found and named', async (t) => {
  t.timeout(400_000);
  const dir = join(tempDir(t), 'data');
  const instance = await shipped(t, dir);
  instance.child.kill('SIGTERM');
  t.is((await instance.ended).code, 0);
  const { ledger, found } = compareWithStop(dir);
  t.deepEqual(found, []);
  const random = seeded(13);
  const files = filesIn(dir).filter((path) => statSync(join(dir, path)).size > 0);
  t.true(
    files.length > 40 && files.includes('log.db') && files.includes('memory/memory.db'),
    files.join(' '),
  );
  const unnamed: string[] = [];
  for (const path of files) {
    const file = join(dir, path);
    const noted = ledger?.files.get(path);
    if (!ledger || !noted) {
      unnamed.push(path);
      continue;
    }
    // Of the ledger one file at a time, so that the others are not read three thousand times.
    saveLedger(dir, { ...ledger, files: new Map([[path, noted]]) });
    const { size, mtimeMs, atimeMs } = statSync(file);
    for (let place = 0; place < OFFSETS; place += 1) {
      const offset = Math.floor(random() * size);
      const undo = flip(file, offset, Math.floor(random() * 8));
      const seen = compareWithStop(dir).found.some((finding) => finding.file === path);
      if (!seen) unnamed.push(`${path} at ${offset}`);
      // A disk that loses a bit does not touch the time of the file: the check in the background reads everything.
      if (place === 0) {
        utimesSync(file, atimeMs / 1_000, mtimeMs / 1_000);
        const silent = isLiving(path) ? compareWithStop(dir).found : compared(dir, ledger.files);
        if (!silent.some((finding) => finding.file === path)) unnamed.push(`${path} at ${offset}, silently`);
      }
      undo();
    }
  }
  t.deepEqual(unnamed, []);
  t.log(`${files.length} files, ${files.length * OFFSETS} flipped bits`);
});

function compared(dir: string, files: ReadonlyMap<string, NotedFile>): readonly Finding[] {
  const steps = compareFiles(dir, { files: new Map(files), stopped: false, read: new Set(), found: [] }, []);
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value.findings;
}

/** Everything that a log says, however it is stored. */
function contentOf(dir: string): string {
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
    return JSON.stringify(
      tables.map(({ name }) => [name, db.prepare(`SELECT * FROM "${name}"`).all()]),
      (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value),
    );
  } finally {
    db.close();
  }
}

test('[C5,C9] after a kill, a flipped bit in the log is found and named, or changes nothing that anybody reads', async (t) => {
  t.timeout(400_000);
  const dir = join(tempDir(t), 'data');
  const instance = await shipped(t, dir);
  instance.child.kill('SIGKILL');
  await instance.ended;
  const copies = tempDir(t);
  const random = seeded(17);
  const outcomes = new Map<string, number>();
  const unnoticed: string[] = [];
  const reference = copyOf(dir, copies, 'reference');
  const content = contentOf(reference);
  const files = { 'log.db': OFFSETS, 'log.db-wal': OFFSETS, 'secrets/log-mark': 10, 'secrets/body-keys': 10 };
  for (const [path, offsets] of Object.entries(files)) {
    for (let place = 0; place < offsets; place += 1) {
      const copy = copyOf(dir, copies, `${path.replace('/', '-')}-${place}`);
      const offset = Math.floor(random() * statSync(join(copy, path)).size);
      flip(join(copy, path), offset, Math.floor(random() * 8));
      const outcome = await noticed(copy, content);
      if (outcome === 'unnoticed') unnoticed.push(`${path} at ${offset}`);
      outcomes.set(`${path} ${outcome}`, (outcomes.get(`${path} ${outcome}`) ?? 0) + 1);
    }
  }
  t.log([...outcomes].map(([outcome, times]) => `${times} × ${outcome}`).join('\n'));
  t.deepEqual(unnoticed, []);
});

async function noticed(dir: string, content: string): Promise<string> {
  try {
    if (compareWithStop(dir).found.length > 0) return 'named before the start';
    await new SqliteLog({ dataDir: dir }).close();
    const reader = new SqliteReader(dir);
    try {
      recover(reader);
      const steps = findDamage(reader, dir);
      for (let step = steps.next(); ; step = steps.next()) {
        if (!step.done) continue;
        const { ranges, others } = step.value;
        if (ranges.length + others.length > 0) return 'named by the check';
        break;
      }
    } finally {
      reader.close();
    }
  } catch (error) {
    if (!isCoded(error)) throw error;
    return 'refused by the start';
  }
  return contentOf(dir) === content ? 'means nothing' : 'unnoticed';
}

function copyOf(dir: string, copies: string, name: string): string {
  const copy = join(copies, name);
  mkdirSync(join(copy, 'secrets'), { recursive: true });
  for (const path of filesIn(dir).filter((path) => /^(log\.db|secrets\/)/.test(path)))
    cpSync(join(dir, path), join(copy, path), { recursive: true });
  return copy;
}
