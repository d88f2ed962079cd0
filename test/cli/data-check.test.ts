import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { DATA_CHECK } from '../../src/core/host/integrity/records.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime, type Runtime } from '../../src/core/host/runtime/runtime.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { call } from '../support/cli.ts';
import { flipBytes, seeded } from '../support/damage.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** With a clock of its own, no check is made but the one that is asked for. */
async function instance(t: ExecutionContext, dataDir: string): Promise<Runtime> {
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [consolePlugin({ port: 0 })] }, { env: {} }).plugins,
    dataDir,
    clock: new VirtualClock(),
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  return runtime;
}

const check = (dir: string, ...more: string[]) =>
  call(['data', 'check', '--data-dir', dir, ...more], { cwd: dir });

/** What is in a folder: each file with its content. */
const contentOf = (dir: string) =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(dir, name)).isFile() && !name.startsWith('lock.'))
    .map((name) => `${name} ${readFileSync(join(dir, name)).toString('base64')}`)
    .toSorted();

test('[C9] data check has a running instance read everything now, which is one record', async (t) => {
  t.timeout(180_000); // the process that reads has the lowest priority
  const dir = tempDir(t);
  const runtime = await instance(t, dir);
  const before = runtime.services.actors.snapshot(DATA_CHECK);
  t.is(before?.context === undefined || !('last' in (before.context as object)), true);
  const { code, out, err } = await check(dir);
  t.is(code, 0, err);
  t.regex(out, /^\d+ records, 0 archives and \d+ files were read\.\nEverything is as it was left\.\n$/);
  const after = runtime.services.actors.snapshot(DATA_CHECK)?.context as { last?: { findings: unknown[] } };
  t.deepEqual(after.last?.findings, []);
});

test('[C9] data check on a stopped instance names what is damaged, exits with 1 and changes nothing', async (t) => {
  const dir = tempDir(t);
  const runtime = await instance(t, dir);
  await runtime.stop('test');
  const sound = await check(dir);
  t.is(sound.code, 0, sound.err + sound.out);
  t.like(JSON.parse((await check(dir, '--json')).out), { ok: true, findings: [], archives: 0 });
  flipBytes(join(dir, 'log.db'), 64, seeded(7));
  const before = contentOf(dir);
  const { code, out } = await check(dir);
  t.is(code, 1);
  t.regex(out, /log\.db.* damaged/);
  t.deepEqual(contentOf(dir), before);
  t.like(JSON.parse((await check(dir, '--json')).out), { ok: false });
});

test('[C9] data check of a folder without a log says so', async (t) => {
  const { code, err } = await check(tempDir(t));
  t.is(code, 2);
  t.regex(err, /HF_LOG_MISSING/);
});
