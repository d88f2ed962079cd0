import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { readRuntimeFile } from '../../../../src/core/host/runtime/runtime-file.ts';
import { exampleLegs } from '../../../../src/plugins/reconciler/options.ts';
import type { routerRemote } from '../../../../src/plugins/router/index.ts';
import { type Child, startChild } from '../../../support/disk.ts';
import { until } from '../../../support/redis.ts';

const binary = new URL('../../../../bin/holdfast.js', import.meta.url);
const source = (path: string) => JSON.stringify(new URL(`../../../../src/${path}`, import.meta.url).pathname);

/**
 * Writes a configuration of a remote router, the reconciler and the console.
 *
 * @param adopted whether the legs may be written without `router adopt`
 * @returns the file
 */
export function writeRemoteConfig(
  dir: string,
  options: NonNullable<Parameters<typeof routerRemote>[0]>,
  { adopted = true }: { readonly adopted?: boolean } = {},
): string {
  const file = join(dir, 'plugins.config.ts');
  writeFileSync(
    file,
    `import { defineConfig } from ${source('index.ts')};
     import { consolePlugin } from ${source('plugins/console/index.ts')};
     import { reconciler } from ${source('plugins/reconciler/index.ts')};
     import { routerRemote } from ${source('plugins/router/index.ts')};
     export default defineConfig({
       plugins: [routerRemote(${JSON.stringify(options)}), reconciler(${JSON.stringify({ legs: exampleLegs, adopted })}), consolePlugin()],
     });`,
  );
  return file;
}

/** Starts a Holdfast without a router of its own, in a process of its own, and waits until it is ready. */
export async function startRemote(
  t: ExecutionContext<any>,
  dataDir: string,
  config: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ child: Child; console: string }> {
  const child = startChild(t, binary, ['start', '--data-dir', dataDir, '--config', config], {
    HOLDFAST_CONSOLE_PORT: '0',
    NODE_NO_WARNINGS: '1',
    ...env,
  });
  let console: string | undefined;
  await until('it is ready', () => {
    if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.errors.join('\n')}`);
    const file = readRuntimeFile(dataDir);
    if (file?.pid === child.process.pid) console = file?.surfaces.console?.url;
    return console !== undefined;
  });
  return { child, console: console ?? '' };
}
