import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('[O7,O29] backups are made on the schedule, kept by number, drilled by a command, and doctor says how they are', async (t) => {
  const dataDir = tempDir(t);
  const cwd = tempDir(t);
  const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
  writeFileSync(
    join(cwd, 'plugins.config.ts'),
    `import { defineConfig } from ${source('index.ts')};
     import { columnar } from ${source('plugins/columnar/index.ts')};
     export default defineConfig({ plugins: [columnar()] });`,
  );
  const holdfast = (...argv: string[]) => call([...argv, '--data-dir', dataDir], { cwd });
  const ofDoctor = async () => {
    const { out } = await holdfast('doctor', 'stack', '--json');
    return JSON.parse(out).checks.find(({ name }: any) => name === 'stack.columnar_backups');
  };
  t.like(await ofDoctor(), { state: 'unknown' });

  const clock = new VirtualClock();
  const plugins = [columnar({ backup: { keep: 2 } }), consolePlugin({ port: 0 })];
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins }, { env: {} }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
    clock,
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  t.like(await ofDoctor(), { state: 'warn', found: 'none was made yet' });

  const folder = join(dataDir, 'backups', 'columnar');
  const files = () => {
    try {
      return readdirSync(folder).filter((name) => name.startsWith('columnar-'));
    } catch {
      return [];
    }
  };
  const until = async (what: string, holds: () => boolean) => {
    for (const end = performance.now() + PATIENCE_MS; !holds(); ) {
      if (performance.now() > end) throw new Error(`it did not come about: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  // With its tables: deadlines run out when the clock is put forward.
  await until(
    'the database',
    () => runtime.services.actors.snapshot('columnar.connection/database')?.value === 'connected',
  );
  // Nothing was ever made, so the first check makes up for it.
  await clock.advance(60_000);
  await until('the first backup', () => files().length === 1);
  const [first = ''] = files();
  await until('its record', () =>
    JSON.stringify(runtime.services.actors.snapshot('columnar.backups/embedded')?.context ?? '').includes(
      first,
    ),
  );
  t.like(await ofDoctor(), { state: 'warn', found: `${first} was made, and none was ever restored` });

  const proven = await holdfast('backup', 'columnar', '--drill');
  t.is(proven.code, 0, proven.err);
  t.is(proven.out, `PROVEN: ${first} was restored, and every table is as it was backed up\n`);
  const { state, found } = await ofDoctor();
  t.is(state, 'ok');
  t.regex(
    found,
    new RegExp(
      `^${first} is the newest, with the bytes that were recorded; a drill has proven ${first} at 2026-01-01T`,
    ),
  );

  const path = join(folder, first);
  const whole = readFileSync(path);
  const broken = Buffer.from(whole);
  const middle = Math.floor(broken.length / 2);
  broken[middle] = (broken[middle] ?? 0) ^ 1;
  writeFileSync(path, broken);
  t.like(await ofDoctor(), {
    state: 'fail',
    found: `${first}: its file is not the one that was written (SHA-256)`,
  });
  writeFileSync(path, whole.subarray(1));
  t.regex((await ofDoctor()).found, /its file has \d+ bytes, and \d+ were recorded/);
  rmSync(path);
  t.like(await ofDoctor(), { state: 'fail', found: `${first}: its file is gone` });
  writeFileSync(path, broken);
  const unproven = await holdfast('backup', 'columnar', '--drill', '--name', first);
  t.is(unproven.code, 1);
  t.regex(unproven.out, /^NOT PROVEN: .*\n +its file is not the one that was written/);
  t.like(await ofDoctor(), { state: 'fail' });
  const raised = async (what: RegExp) => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
      for await (const { effects } of runtime.services.log.read({}))
        if (what.test(JSON.stringify(effects))) return true;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  };
  t.true(await raised(/columnar\.backup_not_proven.*firing/));
  writeFileSync(path, whole);
  t.is((await holdfast('backup', 'columnar', '--drill')).code, 0);
  t.true(await raised(/columnar\.backup_not_proven.*resolved/));

  for (const _ of [1, 2]) {
    await clock.advance(60_000);
    const made = await holdfast('backup', 'columnar');
    t.is(made.code, 0, made.err);
    t.regex(
      made.out,
      /^columnar-[\d-]+\.tar \(\d+\.\d [KM]B\): \d+ rows of 7 tables\nsha256 [0-9a-f]{64}\n$/,
    );
  }
  t.is(files().length, 2, 'the newest two are kept');
  t.false(files().includes(first));
  t.is((await holdfast('backup', 'columnar', '--list')).out.trim().split('\n').length, 2);
  t.is((await holdfast('backup', 'columnar', '--name', 'x')).code, 2);
  t.regex((await holdfast('backup', 'columnar', '--drill', '--name', 'x')).err, /there is no record of x/);

  const [kept = ''] = files();
  const to = join(cwd, 'restored');
  const restored = await holdfast('backup', 'columnar', '--restore', join(folder, kept), '--to', to);
  t.is(restored.code, 0, restored.err);
  t.regex(restored.out, /^otel_logs: 0 rows\n/);
  t.true(readdirSync(to).includes('store'));
  const again = await holdfast('backup', 'columnar', '--restore', join(folder, kept), '--to', to);
  t.is(again.code, 2, 'a folder with data is left alone');
  t.is((await holdfast('backup', 'columnar', '--to', join(cwd, 'other'))).code, 2);

  // By the schedule: 03:30 UTC of the next day.
  const before = files();
  await clock.advance(24 * 3_600_000);
  await until('the one of the night', () => files().some((name) => !before.includes(name)));
});
