import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { consolePlugin } from '../../../../src/plugins/console/index.ts';
import { type CallOptions, call, type Finished, root, writeConfig } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';
import type { VirtualClock } from '../../../support/virtual-clock.ts';
import { type Config, Rig } from '../rig.ts';

const PLUGIN = new URL('../../../../src/plugins/router/index.ts', import.meta.url).pathname;

export { type OnTerminal, onTerminal } from '../../../support/on-terminal.ts';

export interface Desk {
  readonly rig: Rig;
  /** The working directory, with a `plugins.config.ts`. */
  readonly cwd: string;
  readonly holdfast: (argv: readonly string[], options?: Partial<CallOptions>) => Promise<Finished>;
  /** The active config without its ncid. */
  readonly standing: () => Promise<Config>;
  /** The words of a command line on a terminal, quoted for a shell. */
  readonly line: (argv: readonly string[]) => string;
}

/**
 * A running router, and command lines on its data folder.
 *
 * @param windowMs of its transactions
 * @param clock the router's; real time unless given
 */
export async function setUpDesk(
  t: ExecutionContext<any>,
  windowMs = 120_000,
  clock?: VirtualClock,
): Promise<Desk> {
  const cwd = tempDir(t);
  const options = { windowMs };
  writeConfig(cwd, `export default defineConfig({ plugins: [router(${JSON.stringify(options)})] });`, [
    `import { router } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const plugins = [consolePlugin({ port: 0 })];
  const rig = await Rig.start(t, { options, plugins, ...(clock && { clock }) });
  const whole = (argv: readonly string[]) => [...argv, '--data-dir', rig.dataDir];
  return {
    rig,
    cwd,
    holdfast: (argv, more) => call(whole(argv), { cwd, ...more }),
    standing: async () => {
      const { ncid: _, ...config } = await rig.active();
      return config;
    },
    line: (argv) => {
      const words = [process.execPath, join(root, 'bin/holdfast.js'), ...whole(argv)];
      return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    },
  };
}

/** Waits, as long as the test may, until something is so. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}
