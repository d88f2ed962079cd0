import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import test from 'ava';
import { Configuration } from '../src/cli/configuration.ts';
import type { StoppedReports } from '../src/core/host/plugin/definition.ts';
import type { RecordWords } from '../src/core/kernel/actors/definition.ts';
import { builtinPlugins, logFeatures, secretFields, standaloneCommands } from '../src/main.ts';
import { openBench } from './support/actors.ts';
import { call, spawnHoldfast, writeConfig } from './support/cli.ts';
import { door } from './support/door.ts';
import { tempDir } from './support/temp.ts';
import { VirtualClock } from './support/virtual-clock.ts';

test('[C6] a log of the delivered configuration is replayed in full where no configuration is', async (t) => {
  const here = new Configuration({ cwd: resolve(import.meta.dirname, '..'), env: {} });
  const elsewhere = new Configuration({ cwd: tempDir(t), env: {}, builtinPlugins });
  const typesOf = async (configuration: Configuration) =>
    (await configuration.actors()).map(({ type }) => type);
  const known = new Set(await typesOf(elsewhere));
  t.deepEqual(
    (await typesOf(here)).filter((type) => !known.has(type)),
    [],
  );
});

test('while the configuration is broken, the commands that fix it still reach the instance', async (t) => {
  const cwd = tempDir(t);
  mkdirSync(join(cwd, '.holdfast'));
  writeFileSync(join(cwd, 'plugins.config.ts'), 'export default {');
  const { code, err } = await call(['gateway', 'rollback', 'memory'], { cwd, builtinPlugins });
  t.regex(err, /the built-in plugins are used with their defaults\. HF_CONFIG_LOAD/);
  t.regex(err, /HF_CONTROL_UNREACHABLE/, 'it got as far as asking for the instance');
  t.is(code, 1);
});

test('a command that needs no configuration runs without one, and loads no plugin', async (t) => {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'plugins.config.ts'), 'export default {');
  writeFileSync(join(cwd, 'last-success'), '');
  const plugins = () => Promise.reject(new Error('not needed'));
  const options = { cwd, builtinPlugins: plugins, standaloneCommands };
  const { code, out } = await call(['freshness', '--file', join(cwd, 'last-success')], options);
  t.is(code, 0);
  t.regex(out, /^fresh: last-success succeeded 0 h ago/);
});

/** Fields that only plugins know for secrets; every planted value begins alike. */
const PLANTED = {
  mcpSessionId: 'clear-session',
  wifi: { ssid: 'attic', key: 'clear-wifi' },
  apc: { key: 'clear-apc' },
  pppoe: { user: 'clear-user' },
  hostapd: { saePass: 'clear-sae' },
  wpaSupplicant: { pin: 'clear-pin' },
};

/** Configurations that do not load the plugins whose secrets are planted. */
const CONFIGURATIONS: Readonly<Record<string, (dir: string) => void>> = {
  no: () => {},
  'a broken': (dir) => writeFileSync(join(dir, 'plugins.config.ts'), 'export default {'),
  'a foreign': (dir) => {
    writeConfig(
      dir,
      "export default defineConfig({ plugins: [definePlugin({ name: 'lamp', options: z.strictObject({}), register() {} })()] });",
    );
  },
};

for (const [name, configure] of Object.entries(CONFIGURATIONS)) {
  test(`[R32] with ${name} configuration, no command shows what a plugin declares secret`, async (t) => {
    const cwd = tempDir(t);
    const bench = await openBench(
      join(cwd, '.holdfast'),
      [door],
      [{ type: 'lamp.on', handler: () => undefined, onRecovery: 'retry' }],
      new VirtualClock(),
    );
    bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann', ...PLANTED });
    await bench.settled();
    await bench.close();
    configure(cwd);
    const commands = [
      ['log', 'show', '2'],
      ['log', 'list'],
      ['log', 'tail', '--no-follow'],
    ];
    // Each in a process of its own: in this one, another test may have loaded every plugin.
    for (const argv of commands.flatMap((words) => [words, [...words, '--json']])) {
      const { code, out, err } = await spawnHoldfast(t, argv, { cwd }).ended;
      t.is(code, 0, `${argv.join(' ')}: ${err}`);
      t.regex(out, /OPEN/, argv.join(' '));
      t.notRegex(out + err, /clear-/, argv.join(' '));
      if (argv.includes('--json')) t.is(out.match(/\[redacted\]/g)?.length, 6, argv.join(' '));
    }
  });
}

test('[R32] every plugin that declares secret fields does so before any plugin is loaded', async (t) => {
  const early = await secretFields();
  for (const { definition } of await builtinPlugins()) {
    if (definition.secretFields) t.true(early.includes(definition.secretFields), definition.name);
  }
});

test('the words for a log without its plugins are those of the plugins', async (t) => {
  const registrations = await new Configuration({ cwd: tempDir(t), env: {}, builtinPlugins }).builtin();
  const described = registrations?.actors.flatMap(({ type, describe }) =>
    describe ? [[type, describe]] : [],
  );
  const loaded = await Promise.all([...logFeatures().words.values()].map((load) => load()));
  const words: RecordWords = Object.assign({}, ...loaded);
  t.true(Object.keys(words).length > 10);
  t.deepEqual(words, Object.fromEntries(described ?? []));
});

test('[R40] a stopped instance is reported of as its plugins would report', async (t) => {
  const registrations = await new Configuration({ cwd: tempDir(t), env: {}, builtinPlugins }).builtin();
  const declared = registrations?.health.flatMap(({ name, stopped }) => (stopped ? [[name, stopped]] : []));
  const loaded = await Promise.all([...logFeatures().stoppedReports.values()].map((load) => load()));
  const reports: StoppedReports = Object.assign({}, ...loaded);
  const { clock, data, ...ofPlugins } = reports;
  t.truthy(clock && data, 'core reports of its own checks');
  t.deepEqual(Object.keys(ofPlugins), ['transaction']);
  t.deepEqual(ofPlugins, Object.fromEntries(declared ?? []));
});

/** Writes what a process has loaded, as the last line of standard error. */
const LOADED =
  'import{registerHooks}from"node:module";const all=[];registerHooks({load(url,context,next){all.push(url);return next(url,context)}});process.on("exit",()=>process.stderr.write("\\n"+JSON.stringify(all)))';

for (const command of [['log', 'list'], ['log', 'show', '5'], ['replay', 'explain', '5'], ['status']]) {
  test(`${command.join(' ')} loads the words of a log, and no plugin, no machine and no server`, async (t) => {
    const cwd = resolve(import.meta.dirname, '..');
    const dataDir = join(tempDir(t), 'data');
    const log = join(import.meta.dirname, 'fixtures/logs/0.2.0/transaction.jsonl.gz');
    t.is((await call(['log', 'import', log, '--data-dir', dataDir], { cwd })).code, 0);
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LOADED)}` };
    const { err } = await spawnHoldfast(t, [...command, '--data-dir', dataDir], { cwd, env }).ended;
    const loaded: string[] = JSON.parse(err.split('\n').at(-1) ?? '');
    const own = loaded.flatMap(
      (url) => /\/(?:src\/(?:plugins|machines)\/|plugins\.config).*/.exec(url) ?? [],
    );
    const expected =
      /\/src\/plugins\/[^/]+\/(words|secret-fields|stopped-reports)\.ts$|\/pending-transaction\.ts$/;
    t.deepEqual(
      own.filter((url) => !expected.test(url)),
      [],
    );
    t.true(
      own.some((url) => url.endsWith(command[0] === 'status' ? '/stopped-reports.ts' : '/router/words.ts')),
    );
    const packages = new Set(
      loaded.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []),
    );
    t.deepEqual([...packages].sort(), ['commander', 'zod']);
  });
}
