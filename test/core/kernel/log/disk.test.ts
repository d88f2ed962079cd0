import { readFileSync } from 'node:fs';
import test from 'ava';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { fakeDisk, startChild } from '../../../support/disk.ts';
import { tempDir } from '../../../support/temp.ts';

const script = new URL('../../../support/log-child.ts', import.meta.url);

test('[C2] neither an acknowledgement nor an effect precedes the sync of its record', async (t) => {
  const dir = tempDir(t);
  const disk = fakeDisk(dir);
  const child = startChild(t, script, [dir], disk.env);
  await child.line(/^ready/);
  child.say('open warm-up');
  child.say('settle');
  await child.line(/^settled/);

  disk.hold();
  child.say('open ann');
  await child.line(/^decided ann/);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.false(child.lines.includes('durable ann'));
  t.false(child.lines.includes('effect ann'));

  disk.release();
  await child.line(/^durable ann/);
  await child.line(/^effect ann/);
});

test('no sync ever runs on the main thread, so a slow disk cannot stall the event loop', async (t) => {
  const dir = tempDir(t);
  const disk = fakeDisk(dir, 20);
  const child = startChild(t, script, [dir], disk.env);
  await child.line(/^ready/);
  const before = readFileSync(disk.traceFile, 'utf8').length; // opening the files, before there is anything to stall
  for (let i = 0; i < 20; i += 1) child.say(`open ann-${i}`);
  await child.line(/^effect ann-19/);
  const syncs = readFileSync(disk.traceFile, 'utf8').slice(before).trim().split('\n');
  t.true(syncs.length > 0);
  t.true(syncs.every((line) => line.split(' ')[0] !== String(child.process.pid)));
});

test('[C5] a full disk freezes decisions and effects, says so, loses nothing, and goes on when there is space', async (t) => {
  const dir = tempDir(t);
  const disk = fakeDisk(dir);
  const child = startChild(t, script, [dir], disk.env);
  await child.line(/^ready/);
  child.say('open warm-up');
  child.say('settle');
  await child.line(/^settled/);

  disk.fill();
  child.say('open ann');
  await child.line(/^decided ann/);
  t.regex(await child.line(/^frozen/), /full/);
  child.say('open bob');
  await child.line(/^waits bob/);
  t.false(child.lines.includes('effect ann'));

  disk.free();
  await child.line(/^thawed/);
  await child.line(/^effect ann/);
  await child.line(/^effect bob/);
  await child.kill('SIGKILL');
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  const events = (await Array.fromAsync(reader.read())).filter((record) => record.event.type === 'OPEN');
  t.deepEqual(
    events.map((record) => record.event.by),
    ['warm-up', 'ann', 'bob'],
  );
});
