import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { GeneratedFolder } from '../../../../src/plugins/router/embedded/generated-folder.ts';
import { tempDir } from '../../../support/temp.ts';

const A = 'dhcp/conf/eth1.10_v6.conf';
const B = 'dhcp/conf/eth1.20_v6.conf';
const files = (entries: Record<string, string>) => new Map(Object.entries(entries));

/** Everything in the folder, by path. */
function content(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    if (statSync(join(root, name)).isFile()) found[name] = readFileSync(join(root, name), 'utf8');
  }
  return found;
}

async function write(folder: GeneratedFolder, entries: Record<string, string>): Promise<readonly string[]> {
  const staged = await folder.stage(files(entries));
  await staged.commit();
  await staged.keep();
  return staged.changed;
}

test('[R19] files come, change and go with what generates them; equal ones are not written', async (t) => {
  const root = tempDir(t);
  const folder = new GeneratedFolder(root);
  t.deepEqual(await write(folder, { [A]: 'a', [B]: 'b', 'dns/br0.conf': 'n' }), [A, B, 'dns/br0.conf']);
  const { ino } = statSync(join(root, B));
  t.deepEqual(await write(folder, { [A]: 'a2', [B]: 'b' }), [A, 'dns/br0.conf']);
  t.deepEqual(content(root), { [A]: 'a2', [B]: 'b' });
  t.is(statSync(join(root, B)).ino, ino);
  t.deepEqual(await write(folder, { [A]: 'a2', [B]: 'b' }), []);
});

test('[R23] a file that somebody staged in the DHCP directory stays, and is listed with the others', async (t) => {
  const root = tempDir(t);
  const folder = new GeneratedFolder(root);
  await write(folder, { [A]: 'a' });
  writeFileSync(join(root, 'dhcp/conf/own.conf'), 'mine');
  await write(folder, {});
  t.deepEqual(content(root), { 'dhcp/conf/own.conf': 'mine' });
  t.deepEqual(await folder.dhcpFiles(), ['own.conf']);
});

test('[R19] a file of a leg that does not advertise goes, whoever wrote it', async (t) => {
  const root = tempDir(t);
  mkdirSync(join(root, 'dhcp/conf'), { recursive: true });
  writeFileSync(join(root, B), 'left by a kill');
  t.deepEqual(await write(new GeneratedFolder(root), { [A]: 'a' }), [A, B]);
  t.deepEqual(content(root), { [A]: 'a' });
});

test('[R7] nothing is in its place before the commit, and an undo brings everything back', async (t) => {
  const root = tempDir(t);
  const folder = new GeneratedFolder(root);
  await write(folder, { [A]: 'a', [B]: 'b' });
  const before = content(root);
  const staged = await folder.stage(files({ [A]: 'other', 'dns/br0.conf': 'new' }));
  t.is(readFileSync(join(root, A), 'utf8'), 'a');
  await staged.commit();
  t.is(readFileSync(join(root, A), 'utf8'), 'other');
  t.false(existsSync(join(root, B)));
  await staged.undo();
  t.deepEqual(content(root), before);
});

test('[R7] what a kill left between two steps is cleared away by the next write', async (t) => {
  const root = tempDir(t);
  const folder = new GeneratedFolder(root);
  await write(folder, { [A]: 'a' });
  await folder.stage(files({ [A]: 'staged and then killed' }));
  const half = await folder.stage(files({ [A]: 'b' }));
  await half.commit(); // and killed before it was kept
  t.true(readdirSync(join(root, 'dhcp/conf')).length > 1);
  t.deepEqual(await write(folder, { [A]: 'a' }), [A]);
  t.deepEqual(content(root), { [A]: 'a' });
});

/** A file system with room for little. @returns undefined where this machine lets nobody mount one */
function smallDisk(t: ExecutionContext): string | undefined {
  const dir = tempDir(t);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir], { encoding: 'utf8' });
  if (mounted.status !== 0) {
    t.log(`no small disk on this machine (${mounted.stderr?.trim()}): a full one was not tried here`);
    return undefined;
  }
  t.teardown(() => spawnSync('umount', [dir]));
  return dir;
}

test('[R7] on a full disk nothing changes, and the error says so', async (t) => {
  const root = smallDisk(t);
  if (root === undefined) return t.pass();
  const folder = new GeneratedFolder(root);
  await write(folder, { [A]: 'a', [B]: 'b' });
  const before = content(root);
  const error = await t.throwsAsync(folder.stage(files({ [A]: 'a2', [B]: 'x'.repeat(200_000) })));
  t.like(error, { code: 'HF_ROUTER_GENERATE' });
  t.regex(error.message, /disk is full/);
  t.deepEqual(content(root), before);

  // Filled up after the commit: taking it back needs no room.
  const staged = await folder.stage(files({ [A]: 'a2' }));
  await staged.commit();
  t.throws(() => writeFileSync(join(root, 'filler'), 'x'.repeat(200_000)), { code: 'ENOSPC' });
  await staged.undo();
  const { filler: _, ...left } = content(root);
  t.deepEqual(left, before);
});
