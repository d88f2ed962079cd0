import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { progressOf } from '../../src/core/host/progress.ts';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { tempDir } from '../support/temp.ts';

const RECORDS = 6_000;

/** A folder with more records than any work does at once. */
async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], []);
  for (let count = 0; count < RECORDS; count += 1) bench.actors.deliver('test.door/front', { type: 'CLOSE' });
  await bench.settled();
  await bench.close();
  return dir;
}

/** Runs a command that is interrupted when it first shows progress. */
async function interrupted(words: readonly string[], cwd: string, signal: NodeJS.Signals = 'SIGINT') {
  const stop = new AbortController();
  const lines: string[] = [];
  const done = await call(words, {
    cwd,
    interrupted: stop.signal,
    onProgress: (text) => {
      if (text !== '') lines.push(text);
      stop.abort(signal);
    },
  });
  return { ...done, lines };
}

test('[C6] SIGINT in the middle of an export ends with 130 and leaves no file, not even a partial one', async (t) => {
  const dir = await folder(t);
  const place = tempDir(t);
  const { lines, out, code } = await interrupted(
    ['log', 'export', dir, '--out', join(place, 'incident.jsonl')],
    dir,
  );
  t.regex(lines[0] ?? '', /^Exporting: [\d.]+ [KM]B, \d+ %/, 'it was in the middle');
  t.deepEqual(readdirSync(place), []);
  t.is(out, '', 'nothing claims that it was written');
  t.is(code, 130);
});

test('[C6] SIGINT in the middle of an import ends with 130, leaves nothing, and it can be done again', async (t) => {
  const dir = await folder(t);
  const file = join(tempDir(t), 'incident.jsonl');
  t.is((await call(['log', 'export', dir, '--out', file], { cwd: dir })).code, 0);
  const copy = join(tempDir(t), 'copy');
  const { lines, out, code } = await interrupted(['log', 'import', file, '--data-dir', copy], dir);
  t.regex(lines[0] ?? '', /^Importing: [\d.]+ [KM]B, \d+ %/, 'it was in the middle');
  t.is(out, '');
  t.is(code, 130);
  t.deepEqual(readdirSync(copy), []);
  const again = await call(['log', 'import', file, '--data-dir', copy], { cwd: dir });
  t.regex(again.out, /^Imported records 1 to \d+ /, again.err);
});

test('[C6] SIGINT in the middle of a prune leaves the whole log and no partial archive', async (t) => {
  const dir = await folder(t);
  const archive = join(tempDir(t), 'archive');
  const words = ['log', 'prune', '--older-than', '0s', '--archive', archive, '--data-dir', dir];
  const { lines } = await interrupted(words, dir);
  t.regex(lines[0] ?? '', /^Archiving: /);
  t.deepEqual(readdirSync(archive), []);
  t.regex(
    (await call(['log', 'verify', dir], { cwd: dir })).out,
    new RegExp(`${RECORDS + 1} records, 1 to `),
  );
});

test('[C9] verify shows its progress, and where nobody watches a short check shows none', async (t) => {
  const dir = await folder(t);
  const { lines, code } = await interrupted(['log', 'verify', dir], dir, 'SIGTERM');
  t.regex(lines[0] ?? '', /^Checking: [\d.]+ [KM]B, \d+ %/);
  t.is(code, 143, 'no verdict, so no success: 128 and the number of SIGTERM');
  t.is((await call(['log', 'verify', dir], { cwd: dir })).err, '');
});

test('progress has bytes, part, rate and time left', (t) => {
  let now = 0;
  const lines: string[] = [];
  const terminal = { watched: true, progress: (text: string) => lines.push(text) };
  const onProgress = progressOf('Exporting', { terminal, note: () => t.fail() }, () => now);
  onProgress(1_000_000, 0.01);
  now = 100;
  onProgress(2_000_000, 0.02);
  now = 4_000;
  onProgress(40_000_000, 0.4);
  t.deepEqual(lines, ['Exporting: 1.0 MB, 1 %', 'Exporting: 40.0 MB, 40 %, 10.0 MB/s, 6 s left']);
});

test('without a terminal on standard error, progress is a line every ten seconds', (t) => {
  let now = 0;
  const lines: string[] = [];
  const terminal = { watched: false, progress: () => t.fail() };
  const note = (line: string) => void lines.push(`${now} ${line}`);
  const onProgress = progressOf('Importing', { terminal, note }, () => now);
  for (now = 0; now <= 25_000; now += 500) onProgress(now * 1_000);
  t.deepEqual(lines, ['10000 Importing: 10.0 MB, 1.0 MB/s', '20000 Importing: 20.0 MB, 1.0 MB/s']);
});
