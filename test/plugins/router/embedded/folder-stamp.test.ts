import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { FolderStamp, settleMs } from '../../../../src/plugins/router/embedded/folder-stamp.ts';
import { GeneratedFolder } from '../../../../src/plugins/router/embedded/generated-folder.ts';
import { tempDir } from '../../../support/temp.ts';

const A = 'dns/a.conf';
const wanted = new Map([
  [A, 'text a'],
  ['dns/b.conf', 'text b'],
]);
/** Longer than a tick of the clock that stamps files. */
const TICK_MS = 20;

async function remembered(t: ExecutionContext, settles = (_ctimeNs: bigint) => 0) {
  const root = tempDir(t);
  mkdirSync(join(root, 'dns'));
  for (const [path, text] of wanted) writeFileSync(join(root, path), text);
  await sleep(TICK_MS);
  const stamp = new FolderStamp(root, ['dns'], settles);
  stamp.take(wanted)();
  await sleep(TICK_MS);
  return { root, stamp };
}

test('[R19] files that nobody has touched are known to stand', async (t) => {
  const { stamp } = await remembered(t);
  t.true(stamp.stands(wanted));
  t.true(stamp.stands(new Map([...wanted].toReversed())));
});

const touches: Readonly<Record<string, (root: string) => void>> = {
  'an edit of the same length': (root) => writeFileSync(join(root, A), 'TEXT a'),
  'the same text written again': (root) => writeFileSync(join(root, A), 'text a'),
  'a file that is gone': (root) => rmSync(join(root, A)),
  'a file that somebody added': (root) => writeFileSync(join(root, 'dns/own.conf'), ''),
  'a directory that is gone': (root) => rmSync(join(root, 'dns'), { recursive: true }),
};
for (const [title, touch] of Object.entries(touches)) {
  test(`[R19] they are read again after ${title}`, async (t) => {
    const { root, stamp } = await remembered(t);
    touch(root);
    t.false(stamp.stands(wanted));
  });
}

test('[R19] they are read again when others are wanted', async (t) => {
  const { stamp } = await remembered(t);
  t.false(stamp.stands(new Map([...wanted, [A, 'another']])));
  t.false(stamp.stands(new Map([[A, 'text a']])));
  t.false(stamp.stands(new Map([...wanted, ['dns/c.conf', 'c']])));
});

test('[R19] what was written a moment before is not trusted by its times', async (t) => {
  const { stamp } = await remembered(t, () => 60_000);
  t.false(stamp.stands(wanted));
});

test('[R19] times that tell milliseconds apart are trusted earlier than coarse ones', async (t) => {
  t.is(settleMs(1_800_000_000_123_456_789n), 100);
  t.is(settleMs(1_800_000_000_120_000_000n), 2_000);
  t.is(settleMs(1_800_000_000_000_000_000n), 2_000);
  const seen: bigint[] = [];
  await remembered(t, (ctimeNs) => {
    seen.push(ctimeNs);
    return 0;
  });
  t.is(seen.length, wanted.size + 1, 'each file and the directory by its own time');
});

test('[R19] a file edited by hand is written again by the next save, whenever it was edited', async (t) => {
  const root = tempDir(t);
  const folder = new GeneratedFolder(root);
  for (let round = 0; round < 3; round += 1) {
    const staged = await folder.stage(wanted);
    await staged.commit();
    await staged.keep();
    t.is(readFileSync(join(root, A), 'utf8'), 'text a', `round ${round}`);
    writeFileSync(join(root, A), 'TEXT a');
  }
});
