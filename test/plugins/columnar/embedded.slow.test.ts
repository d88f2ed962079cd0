import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { EmbeddedEngine } from '../../../src/plugins/columnar/engine/embedded.ts';
import { EMBEDDED_DATABASE } from '../../../src/plugins/columnar/engine/grants.ts';
import { call, spawnHoldfast } from '../../support/cli.ts';
import { fakeDisk, startChild } from '../../support/disk.ts';
import { tempDir } from '../../support/temp.ts';

function open(t: ExecutionContext, folder: string): { database: Database; engine: EmbeddedEngine } {
  const engine = new EmbeddedEngine(folder);
  t.teardown(() => engine.close());
  const schema = { database: EMBEDDED_DATABASE, retentionDays: 30, replicas: 1 };
  return { engine, database: new Database({ engine, clock: systemClock, schema }) };
}

const insertChild = new URL('insert-child.ts', import.meta.url);

test.serial(
  '[O7] kill -9 loses no acknowledged row, and a second process is refused while the first one has the folder',
  async (t) => {
    const folder = join(tempDir(t), 'columnar');
    const { database } = open(t, folder);
    let acknowledged = 0;
    for (const rounds of [3, 7]) {
      const child = startChild(t, insertChild, [folder]);
      await child.line(new RegExp(`^acknowledged ${rounds * 20}$`));
      if (rounds === 3) {
        const second = startChild(t, insertChild, [folder]);
        t.is(await second.line(/^refused/), 'refused HF_COLUMNAR_FOLDER');
        const reason = new RegExp(`process ${child.process.pid} has it open already`);
        await t.throwsAsync(database.query('SELECT 1'), { code: 'HF_COLUMNAR_FOLDER', message: reason });
      }
      await child.kill('SIGKILL');
      acknowledged = Math.max(acknowledged, Number(child.lines.at(-1)?.split(' ')[1]));
    }
    const [row] = await database.query<{ rows: string; bodies: string; newest: string }>(
      'SELECT count() AS rows, uniqExact(Body) AS bodies, max(toUInt32(Body)) + 1 AS newest FROM otel_logs',
    );
    const { rows = '', bodies, newest } = row ?? {};
    t.true(Number(rows) >= acknowledged, `${rows} of ${acknowledged}`);
    t.is(bodies, rows, 'a batch that was inserted again under its name is there once');
    t.is(newest, rows, 'and none between is missing');
  },
);

test.serial(
  '[O7] a damaged part is set aside and told; a folder that cannot be read keeps nothing from it once it can',
  async (t) => {
    const folder = join(tempDir(t), 'columnar');
    const files = (name: RegExp) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((path) => name.test(path))
        .map((path) => join(folder, path));
    const child = startChild(t, insertChild, [folder]);
    await child.line(/^acknowledged 40$/);
    await child.kill('SIGKILL');
    const [part = ''] = files(/_1_1_0\/data\.bin$/);
    writeFileSync(part, 'rust');
    const versions = files(/format_version\.txt$/).map((file) => [file, readFileSync(file, 'utf8')] as const);
    for (const [file] of versions) writeFileSync(file, 'rust');
    const { database } = open(t, folder);
    await t.throwsAsync(database.query('SELECT 1'), {
      code: 'HF_COLUMNAR_FOLDER',
      message: /it is damaged or of a newer engine/,
    });
    for (const [file, text] of versions) writeFileSync(file, text);
    const logs = (await database.tables()).find(({ table }) => table === 'otel_logs');
    t.like(logs, { damaged: 1, made: 'here' });
  },
);

test.serial('[O7] an insert of which a write fails is refused, and the table stays whole', async (t) => {
  const dir = tempDir(t);
  const folder = join(dir, 'columnar');
  const disk = fakeDisk(dir);
  const child = startChild(t, insertChild, [folder], disk.env);
  await child.line(/^acknowledged 40$/);
  // Read at a start only: the engine itself would lose the rows then, and find nothing wrong until.
  disk.fill('columns_substreams.txt');
  t.is(await child.line(/^(refused|acknowledged 2000$)/), 'refused HF_COLUMNAR_FULL');
  disk.free();
  await child.kill('SIGKILL');
  const acknowledged = child.lines.at(-2)?.split(' ')[1];
  const { database } = open(t, folder);
  const [row] = await database.query<{ rows: string }>('SELECT count() AS rows FROM otel_logs');
  t.is(row?.rows, acknowledged);
  const logs = (await database.tables()).find(({ table }) => table === 'otel_logs');
  t.is(logs?.damaged, 0);
});

test.serial('once it is closed nothing keeps the process alive', async (t) => {
  const child = startChild(t, insertChild, [join(tempDir(t), 'columnar')]);
  await child.line(/^acknowledged 40$/);
  const ended = new Promise((resolve) => child.process.once('exit', resolve));
  child.say('end');
  t.is(await ended, 0);
});

test.serial('[O7] without the package of the engine the plugin says so, and the rest runs', async (t) => {
  const dir = tempDir(t);
  const hook = join(dir, 'hook.mjs');
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module';
     registerHooks({ resolve(name, context, next) {
       if (name === 'chdb/connection') throw new Error("Cannot find package 'chdb'");
       return next(name, context);
     } });`,
  );
  const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
  const config = join(dir, 'plugins.config.ts');
  writeFileSync(
    config,
    `import { defineConfig } from ${source('index.ts')};
     import { columnar } from ${source('plugins/columnar/index.ts')};
     import { consolePlugin } from ${source('plugins/console/index.ts')};
     export default defineConfig({ plugins: [columnar(), consolePlugin({ port: 0 })] });`,
  );
  const place = ['--config', config, '--data-dir', join(dir, 'data')];
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(hook).href}` };
  const runtime = spawnHoldfast(t, ['start', ...place], { cwd: dir, env });
  await runtime.see(/columnar failed.*HF_COLUMNAR_ENGINE_MISSING/);
  await runtime.see(/Holdfast is ready/);
  const { code, err } = await spawnHoldfast(t, ['stack', 'verify', ...place], { cwd: dir }).ended;
  t.is(code, 1);
  t.regex(err, /HF_COLUMNAR_NOT_RUNNING/);
  t.regex(err, /the instance that runs here has none/);
  runtime.child.kill('SIGTERM');
  t.is((await runtime.ended).code, 0);
});

test.serial('[O20] Ctrl-C ends a query in the engine too', async (t) => {
  const dir = tempDir(t);
  const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
  const config = join(dir, 'plugins.config.ts');
  writeFileSync(
    config,
    `import { defineConfig } from ${source('index.ts')};
     import { columnar } from ${source('plugins/columnar/index.ts')};
     export default defineConfig({ plugins: [columnar()] });`,
  );
  const place = ['--config', config, '--data-dir', join(dir, 'data')];
  const runtime = spawnHoldfast(t, ['start', ...place], { cwd: dir });
  await runtime.see(/Holdfast is ready/);
  const slow = ['stack', 'query', 'SELECT sum(sin(number)) FROM numbers(100000000000)', '--timeout', '300'];
  const asking = spawnHoldfast(t, [...slow, ...place], { cwd: dir });
  const ask = () => call(['stack', 'query', 'SELECT 1', '--timeout', '1', ...place], { cwd: dir });
  // The lane is one: a second question waits until the first is over, and runs into its own time limit.
  while (!/HF_COLUMNAR_TIMEOUT/.test((await ask()).err));
  asking.child.kill('SIGINT');
  t.is((await asking.ended).code, 130);
  t.is((await ask()).code, 0);
  runtime.child.kill('SIGTERM');
  t.is((await runtime.ended).code, 0);
});
