import { resolve } from 'node:path';
import test from 'ava';
import { Configuration } from '../src/core/cli/configuration.ts';
import { builtinPlugins } from '../src/main.ts';
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
