import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { call, root, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { FieldStore } from './field-store.ts';

const never = new AbortController().signal;

test('[B6] a drill that kill -9 ends in any phase is cleaned up by the next start, and the log replays', async (t) => {
  const cwd = tempDir(t);
  const [live, scratch] = await Promise.all([FieldStore.start(t), FieldStore.start(t)]);
  live.fill(10);
  live.snapshot();
  const source = (path: string) => JSON.stringify(join(root, 'src', path));
  writeConfig(
    cwd,
    `export default defineConfig({ plugins: [
       memory({ url: '${live.url}' }), restore({ scratchUrl: '${scratch.url}', pollMs: 10, retryMs: 50 }) ] });`,
    [
      `import { memory } from ${source('plugins/memory/index.ts')};`,
      `import { restore } from ${source('plugins/restore/index.ts')};`,
    ],
  );
  const dataDir = join(cwd, 'data');
  const env = { NODE_NO_WARNINGS: '1', HOME: cwd };
  const start = async () => {
    const instance = spawnHoldfast(t, ['start', '--data-dir', dataDir], { cwd, env });
    await instance.see(/Holdfast is ready/);
    return instance;
  };
  const status = async () => (await postControl(dataDir, '/restore/status', {}, never)).body as any;
  const see = async (isSo: (status: any) => boolean) => {
    let now = await status();
    for (let tries = 0; !isSo(now) && tries < 1_000; tries += 1) {
      await delay(20);
      now = await status();
    }
    t.true(isSo(now), JSON.stringify(now));
    return now;
  };
  const phases = {
    choosing: [live, 'GET /collections/memory/snapshots'],
    preparing: [scratch, 'GET /readyz'],
    recovering: [scratch, 'PUT /collections/memory/snapshots/recover'],
    verifying: [scratch, 'POST /collections/memory/points/scroll'],
    cleaning: [scratch, 'DELETE /collections/memory'],
  } as const;
  let instance = await start();
  for (const [phase, [store, hangs]] of Object.entries(phases)) {
    const reached = new Promise<void>((resolve) => {
      store.mishap = (one) => {
        if (one !== hangs) return undefined;
        resolve();
        return 'hang';
      };
    });
    const { body } = await postControl(dataDir, '/restore/drill', { path: 'a' }, never);
    await reached;
    t.is((await status()).state, phase);
    instance.child.kill('SIGKILL');
    await instance.ended;
    store.mishap = () => undefined;
    instance = await start();
    const { results } = await see(({ state }) => /^resting/.test(state));
    const result = results.at(-1);
    t.is(result.id, (body as any).id);
    if (phase === 'cleaning') t.is(result.outcome, 'completed');
    else t.like(result.failure, { phase, reason: 'it was interrupted by the end of the runtime' });
    t.deepEqual([...scratch.collections.keys()], [], `nothing is left of a drill killed while ${phase}`);
  }
  instance.child.kill('SIGTERM');
  await instance.ended;
  const verified = await call(['replay', 'verify', '--data-dir', dataDir], { cwd });
  t.regex(verified.out, /0 divergences, chain ok/);
});
