import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { coreCommands } from '../../src/cli/commands.ts';
import { commandWords } from '../../src/core/host/plugin/command.ts';
import { call, writeConfig } from '../support/cli.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';

test('every command has help with an example that calls it', async (t) => {
  const cwd = tempDir(t);
  for (const { name, example } of coreCommands) {
    const words = commandWords(name);
    const { code, out } = await call([...words, '--help'], { cwd });
    t.is(code, 0, name);
    t.true(out.includes(`$ ${example}`), name);
    t.true(example.includes(`holdfast ${words.join(' ')}`), example);
    for (const flag of ['--config', '--data-dir', '--json', 'Exit codes: 0'])
      t.true(out.includes(flag), flag);
    t.true(
      out.split('\n').every((line) => line.length <= 100),
      name,
    );
  }
});

test('help lists the commands of plugins under their name, and says when it cannot', async (t) => {
  const cwd = tempDir(t);
  const without = await call(['--help'], { cwd });
  t.is(without.code, 0);
  t.regex(without.out, /log +Reads the event log/);
  t.regex(without.out, /no plugins\.config\.ts here/);

  doorsConfig(cwd);
  const { out } = await call(['--help'], { cwd });
  t.regex(out, /Plugin doors:\n +doors/);
  t.notRegex(out, /no plugins\.config\.ts/);
  t.regex((await call(['doors', '--help'], { cwd })).out, /count \[options\] \[street\] +Counts the doors/);
});

test('a plugin that is broken spoils neither help nor the commands of core', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [{}] });');
  const help = await call(['--help'], { cwd });
  t.is(help.code, 0);
  t.regex(help.out, /commands of plugins are not listed\. HF_CONFIG_PLUGIN/);

  mkdirSync(join(cwd, '.holdfast'));
  const list = await call(['log', 'list'], { cwd });
  t.is(list.code, 2);
  t.regex(
    list.err,
    /^The configuration cannot be loaded; using the data folder .*\.holdfast\. HF_CONFIG_PLUGIN: /,
  );
  t.regex(list.err, /HF_LOG_MISSING/);
});

test('[R32] what a configuration throws is shown without its secrets, whatever command reads it', async (t) => {
  const cwd = tempDir(t);
  mkdirSync(join(cwd, '.holdfast'));
  writeConfig(cwd, "throw new Error('password=canary-4711 token: canary-4712');");
  for (const argv of [
    ['--help'],
    ['log', 'list'],
    ['gateway', 'keys', 'list'],
    ['router', 'history', '--json'],
  ]) {
    const { out, err } = await call(argv, { cwd });
    t.notRegex(out + err, /canary/, argv.join(' '));
    t.regex(out + err, /password=\[redacted\]/, argv.join(' '));
  }
});

test('a command of a plugin gets its arguments, its flags and --json', async (t) => {
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const plain = await call(['doors', 'count', 'High Street', '--lit'], { cwd });
  t.deepEqual(plain, { code: 0, out: '2 doors in High Street, lit\n', err: '' });
  t.is((await call(['--json', 'doors', 'count'], { cwd })).out, '{"street":"anywhere"}\n');
  const named = await call(['doors', 'count', '--config', join(cwd, 'plugins.config.ts')], {
    cwd: tempDir(t),
  });
  t.is(named.out, '2 doors in anywhere\n');
});

test('the version is told without asking the configuration', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, 'globalThis.wasAsked = true; export default defineConfig({ plugins: [] });');
  t.is((await call(['--version'], { cwd })).code, 0);
  t.false('wasAsked' in globalThis);
});

test('a plugin cannot take a command of core', async (t) => {
  const cwd = tempDir(t);
  writeConfig(
    cwd,
    `const bold = definePlugin({ name: 'bold', options: z.strictObject({}), register(ctx) {
      ctx.command({ name: 'log list', summary: 's', example: 'e', run: () => 0 });
    } });
    export default defineConfig({ plugins: [bold()] });`,
  );
  t.regex((await call(['--help'], { cwd })).out, /HF_PLUGIN_CONFLICT: Command log list .*core and bold/);
});

const mistakes: readonly [argv: string[], what: RegExp, remedy: RegExp][] = [
  [['stauts'], /Unknown command 'stauts'\. Did you mean status\?/, /`holdfast --help`/],
  [['log', 'lst'], /Unknown command 'lst'\. Did you mean list\?/, /`holdfast log --help`/],
  [
    ['log', 'list', '--form', '3'],
    /Unknown option '--form'\. Did you mean --from\?/,
    /`holdfast log list --help`/,
  ],
  [['log', 'show'], /Missing required argument 'seq'/, /`holdfast log show --help`/],
  [['log', 'show', 'x'], /The record takes a number from 1/, /`holdfast log show --help`/],
  [['log', 'list', '--limit', '-1'], /--limit takes a number from 0/, /`holdfast log list --help`/],
  [['log', 'list', '--from', 'yesterday'], /--from yesterday is neither/, /`holdfast log list --help`/],
  [['status', 'now'], /Too many arguments/, /`holdfast status --help`/],
  [['log'], /A command is needed after log/, /`holdfast log --help`/],
  [[], /A command is needed/, /`holdfast --help`/],
];

for (const [argv, what, remedy] of mistakes) {
  test(`holdfast ${argv.join(' ')} is told what is wrong and what fixes it, with exit code 2`, async (t) => {
    const { code, err } = await call(argv, { cwd: tempDir(t) });
    t.is(code, 2);
    const [first, second = '', third = ''] = err.slice(err.indexOf('HF_')).split('\n');
    t.regex(first ?? '', /^HF_CLI_(USAGE|COMMAND)$/);
    t.regex(second, what);
    t.regex(third, remedy);
    t.notRegex(err, /\n\s+at /);
  });
}

test('with --json an error is one JSON object on standard error, and nothing is on standard output', async (t) => {
  const cwd = tempDir(t);
  const { code, out, err } = await call(['log', 'list', '--json'], { cwd });
  t.is(code, 2);
  t.is(out, '');
  const { error } = JSON.parse(err);
  t.is(error.code, 'HF_LOG_MISSING');
  t.deepEqual(Object.keys(error), ['code', 'what', 'remedy']);
});

test('the version is that of the package', async (t) => {
  const { code, out } = await call(['--version'], { cwd: tempDir(t) });
  t.is(code, 0);
  t.regex(out, /^\d+\.\d+\.\d+\n$/);
});

test('a folder named by --data-dir is read without the configuration being touched', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, `throw new Error('touched');`);
  const { err } = await call(['log', 'show', '1', '--data-dir', join(cwd, 'none')], { cwd });
  t.regex(err, /HF_LOG_MISSING/);
  t.notRegex(err, /touched/);
  const fromEnv = await call(['status', '--json'], { cwd, env: { HOLDFAST_DATA_DIR: 'elsewhere' } });
  t.is(JSON.parse(fromEnv.out).dataDir, join(cwd, 'elsewhere'));
});

test('the data folder that the configuration names is used when nobody names another', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, `export default defineConfig({ plugins: [], data: { dir: 'kept' } });`);
  const { out } = await call(['status', '--json'], { cwd });
  t.is(JSON.parse(out).dataDir, join(cwd, 'kept'));
});
