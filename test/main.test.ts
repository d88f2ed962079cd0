import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import test from 'ava';
import { Configuration } from '../src/cli/configuration.ts';
import { builtinPlugins, standaloneCommands } from '../src/main.ts';
import { call } from './support/cli.ts';
import { tempDir } from './support/temp.ts';

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

test('[C14] while the configuration is broken, the commands that fix it still reach the instance', async (t) => {
  const cwd = tempDir(t);
  mkdirSync(join(cwd, '.holdfast'));
  writeFileSync(join(cwd, 'plugins.config.ts'), 'export default {');
  const { code, err } = await call(['gateway', 'rollback', 'memory'], { cwd, builtinPlugins });
  t.regex(err, /plugins that Holdfast brings stand in with their defaults\. HF_CONFIG_LOAD/);
  t.regex(err, /HF_CONTROL_UNREACHABLE/, 'it got as far as asking for the instance');
  t.is(code, 1);
});

test('[O18] a command that needs no configuration runs without one, and loads no plugin', async (t) => {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'plugins.config.ts'), 'export default {');
  writeFileSync(join(cwd, 'last-success'), '');
  const plugins = () => Promise.reject(new Error('not needed'));
  const options = { cwd, builtinPlugins: plugins, standaloneCommands };
  const { code, out } = await call(['freshness', '--file', join(cwd, 'last-success')], options);
  t.is(code, 0);
  t.regex(out, /^fresh: last-success succeeded 0 h ago/);
});
