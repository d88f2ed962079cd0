import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { root, writeConfig } from '../../support/cli.ts';
import { fakeDisk, startChild } from '../../support/disk.ts';
import { tempDir } from '../../support/temp.ts';
import { fill, rest, somePoints, storePoints } from './rig.ts';

const POINTS = '/collections/memory/points';
const SNAPSHOTS = '/collections/memory/snapshots';

/** A store in a process of its own, which can be killed. */
async function startStore(t: ExecutionContext, cwd: string, env: Readonly<Record<string, string>> = {}) {
  writeConfig(cwd, 'export default defineConfig({ plugins: [memoryStore({ port: 0 })] });', [
    `import { memoryStore } from ${JSON.stringify(join(root, 'src/plugins/memory-store/index.ts'))};`,
  ]);
  const dataDir = join(cwd, 'data');
  const binary = new URL('../../../bin/holdfast.js', import.meta.url);
  const args = ['start', '--data-dir', dataDir, '--config', join(cwd, 'plugins.config.ts')];
  const child = startChild(t, binary, args, { NODE_NO_WARNINGS: '1', ...env });
  for (;;) {
    const file = readRuntimeFile(dataDir);
    const { url } = file?.surfaces.memory ?? {};
    if (file?.pid === child.process.pid && url) return { child, url, dataDir };
    if (child.process.exitCode !== null) throw new Error(child.errors.join('\n'));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const count = async (url: string): Promise<number> =>
  (await rest(url, 'POST', `${POINTS}/count`, {})).body.result.count;
const peakMb = (pid: number | undefined): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

test('[B6] kill -9 while a snapshot is made, or one is recovered from, leaves the old or the new, and no half', async (t) => {
  const cwd = tempDir(t);
  storePoints(join(cwd, 'data'), 4_000, 384);
  let store = await startStore(t, cwd);
  const { body: kept } = await rest(store.url, 'POST', SNAPSHOTS);
  await rest(store.url, 'PUT', POINTS, { points: somePoints(1, 384, 9_000) });
  const whole = new Set([kept.result.name]);
  for (const delay of [5, 40, 120]) {
    const { url, child } = store;
    const made = rest(url, 'POST', SNAPSHOTS).catch(() => undefined);
    const recovered = rest(url, 'PUT', `${SNAPSHOTS}/recover`, {
      location: `${url}${SNAPSHOTS}/${kept.result.name}`,
      priority: 'snapshot',
    }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, delay));
    await child.kill('SIGKILL');
    const [snapshot, recovery] = await Promise.all([made, recovered]);
    if (snapshot?.status === 200) whole.add(snapshot.body.result.name);
    store = await startStore(t, cwd);
    const now = await count(store.url);
    t.true(recovery?.status === 200 ? now === 4_000 : now === 4_000 || now === 4_001, `${now} points`);
    const { body } = await rest(store.url, 'GET', SNAPSHOTS);
    const names: string[] = body.result.map((one: any) => one.name);
    for (const name of whole) t.true(names.includes(name), 'what was answered is there');
    for (const name of names.filter((one) => !whole.has(one) || one === names.at(-1))) {
      whole.add(name);
      const location = `${store.url}${SNAPSHOTS}/${name}`;
      const again = await rest(store.url, 'PUT', '/collections/again/snapshots/recover', { location });
      t.is(again.status, 200, JSON.stringify(again.body));
    }
    const files = readdirSync(join(store.dataDir, 'memory', 'snapshots', 'memory'));
    t.deepEqual(
      files.filter((name) => name.endsWith('.part')),
      [],
    );
  }
});

test('a full disk is a 507, nothing is lost, and what comes after is stored', async (t) => {
  const cwd = tempDir(t);
  const disk = fakeDisk(tempDir(t));
  const store = await startStore(t, cwd, disk.env);
  await fill(store.url, 10);
  const { body: made } = await rest(store.url, 'POST', SNAPSHOTS);
  disk.fill();
  const refused = await rest(store.url, 'PUT', POINTS, { points: somePoints(5, 4, 100) });
  t.is(refused.status, 507, JSON.stringify(refused.body));
  t.is(refused.body.code, 'HF_MEMORY_STORE_FULL');
  const location = `${store.url}${SNAPSHOTS}/${made.result.name}`;
  t.is((await rest(store.url, 'PUT', `${SNAPSHOTS}/recover`, { location })).status, 507);
  t.is(await count(store.url), 10);
  disk.free();
  t.is((await rest(store.url, 'PUT', POINTS, { points: somePoints(5, 4, 100) })).status, 200);
  t.is(await count(store.url), 15);
});

test('[B1] memory does not grow with a snapshot, and too many at once are told when to come again', async (t) => {
  const cwd = tempDir(t);
  storePoints(join(cwd, 'data'), 40_000, 384);
  const store = await startStore(t, cwd);
  const one = async (collection: string) => {
    const snapshots = `/collections/${collection}/snapshots`;
    const { body } = await rest(store.url, 'POST', snapshots);
    const location = `${store.url}${snapshots}/${body.result.name}`;
    await rest(store.url, 'PUT', `${snapshots}/recover`, { location });
    return body.result;
  };
  await fill(store.url, 10, 4, 'few');
  for (let round = 0; round < 3; round += 1) await one('few'); // its threads and buffers are there
  const few = peakMb(store.child.process.pid);
  const { size } = await one('memory');
  const grown = peakMb(store.child.process.pid) - few;
  t.true(size > 60e6);
  t.true(grown < size / 1e6, `${grown} MB for a snapshot of ${size} bytes`);
  const asked = await Promise.all(Array.from({ length: 12 }, () => rest(store.url, 'POST', SNAPSHOTS)));
  const busy = asked.filter(({ status }) => status === 429);
  t.true(busy.length > 0);
  t.true(busy.every(({ headers }) => headers.get('retry-after') === '5'));
  t.is(asked.filter(({ status }) => status === 200).length + busy.length, 12);
});
