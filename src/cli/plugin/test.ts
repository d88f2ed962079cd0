import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import { CliError } from '../errors.ts';

/** `holdfast plugin test [name]`: the tests of the project's plugins, in Node's own runner, with these modules as `holdfast`. */
export const testPlugins: CommandRun = async ([name], _flags, { config, signal }) => {
  const { file } = await config();
  const folder = join(dirname(file), 'plugins', ...(name === undefined ? [] : [name]));
  const tests = existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((path) => /\.test\.[mc]?[jt]s$/.test(path) && !path.includes('node_modules'))
        .map((path) => join(folder, path))
    : [];
  if (tests.length === 0) throw new CliError('HF_CLI_PLUGIN', { reason: `There are no tests in ${folder}` });
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  const ownModules = new URL(`./own-modules${extension}`, import.meta.url).href;
  const child = spawn(process.execPath, ['--import', ownModules, '--test', ...tests.sort()], {
    stdio: 'inherit',
    signal,
  });
  const [code] = await once(child, 'exit');
  return code ?? 1;
};
