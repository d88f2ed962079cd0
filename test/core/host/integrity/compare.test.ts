import { createHash } from 'node:crypto';
import { renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { compareFiles, compareWithStop, noteAtStop } from '../../../../src/core/host/integrity/compare.ts';
import { type NotedFile, statOf } from '../../../../src/core/host/integrity/files.ts';
import type { Finding } from '../../../../src/core/host/integrity/findings.ts';
import { emptyLedger, loadLedger, saveLedger } from '../../../../src/core/host/integrity/ledger.ts';
import { tempDir } from '../../../support/temp.ts';

const FILE = 'token';
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** A file, and what an earlier check noted of another content of the same length in the same place. */
function written(dir: string): NotedFile {
  writeFileSync(join(dir, FILE), 'second');
  const now = statOf(join(dir, FILE));
  if (!now) throw new Error('it was not written');
  return { ...now, modified: now.modified - 60_000, digest: digestOf('first.') };
}

function check(dir: string, files: Map<string, NotedFile>): Finding[] {
  const steps = compareFiles(dir, { ...emptyLedger(), files }, []);
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value.findings;
}

test('[C9] a file that was made anew with the inode of the one that was noted was replaced, not overwritten', (t) => {
  const dir = tempDir(t);
  const noted = written(dir);
  const files = new Map([[FILE, { ...noted, made: (noted.made ?? 0) - 60_000 }]]);
  t.deepEqual(check(dir, files), []);
  t.is(files.get(FILE)?.digest, digestOf('second'), 'it is noted as it is now');
});

test('[C9] a file that is the one that was noted, with another content, was overwritten', (t) => {
  const dir = tempDir(t);
  const noted = written(dir);
  for (const made of [noted.made, undefined])
    t.like(check(dir, new Map([[FILE, { ...noted, made }]])), [{ kind: 'changed', file: FILE }], `${made}`);
  const silent = new Map([[FILE, { ...noted, modified: noted.modified + 60_000 }]]);
  t.like(check(dir, silent), [{ kind: 'damaged', file: FILE }]);
});

test('[C9] a file that is replaced again and again raises no finding', (t) => {
  const dir = tempDir(t);
  const files = new Map<string, NotedFile>();
  const inodes = new Set<number>();
  for (let turn = 0; turn < 12; turn += 1) {
    for (const part of ['a', 'b']) {
      writeFileSync(join(dir, 'other.new'), `${turn} ${part}`);
      renameSync(join(dir, 'other.new'), join(dir, FILE));
    }
    inodes.add(statSync(join(dir, FILE)).ino);
    t.deepEqual(check(dir, files), []);
    const noted = files.get(FILE);
    // As if some time had passed: the clock of a file system moves in steps of some milliseconds.
    if (noted) files.set(FILE, { ...noted, made: (noted.made ?? 0) - 60_000 });
  }
  t.log(`${inodes.size} inodes`);
});

test('[C9] a ledger of an earlier version, without the times at which files were made, is read, and a stop adds them', (t) => {
  const dir = tempDir(t);
  const { made, ...old } = { ...written(dir), digest: digestOf('second') };
  const row = { ...old, modified: old.modified + 60_000 };
  saveLedger(dir, { ...emptyLedger(), stopped: true, files: new Map([[FILE, row]]) });
  t.is(loadLedger(dir)?.files.get(FILE)?.made, undefined);
  t.deepEqual(compareWithStop(dir).found, []);
  noteAtStop(dir);
  t.is(loadLedger(dir)?.files.get(FILE)?.made, made);
  t.deepEqual(compareWithStop(dir).found, []);
  writeFileSync(join(dir, FILE), 'third.');
  // As if some time had passed: the clock of a file system moves in steps of some milliseconds.
  const later = new Date(Date.now() + 1_000);
  utimesSync(join(dir, FILE), later, later);
  t.like(compareWithStop(dir).found, [{ kind: 'changed', file: FILE }]);
});
