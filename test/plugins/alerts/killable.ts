/** Alerts in a process of their own, which a test may kill. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import type { alerts } from '../../../src/plugins/alerts/index.ts';
import { call, type Finished, root, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';

export interface KillableAlerts {
  /** Starts a process on the same data folder, and waits until it runs. @returns ends it by a signal, and waits for its end */
  start(): Promise<(signal: NodeJS.Signals) => Promise<void>>;
  /** The running process raises a firing alert, whose record is durable then. */
  raise(name: string): Promise<void>;
  /** A command on its data folder. */
  holdfast(...argv: readonly string[]): Promise<Finished>;
  /** Waits until something is so. @throws after `limitMs` */
  until(what: string, holds: () => unknown): Promise<void>;
}

/** @param limitMs of each wait, milliseconds */
export function killableAlerts(
  t: ExecutionContext,
  options: NonNullable<Parameters<typeof alerts>[0]>,
  limitMs: number,
): KillableAlerts {
  const cwd = tempDir(t);
  const dataDir = join(cwd, 'data');
  const config = writeConfig(
    cwd,
    `const raiser = definePlugin({
       name: 'raiser',
       options: z.strictObject({}),
       register: (context) => context.control((surface, { bus, log }) => surface.post('/raise', async ({ body }) => {
         bus.publish(alertRaised, { name: body.name, severity: 'critical', text: 'It is.', labels: { state: 'firing' } });
         await log.whenDurable(log.lastSeq());
         return {};
       })),
     });
     export default defineConfig({ plugins: [alerts(${JSON.stringify(options)}), raiser()] });`,
    [
      `import { alerts } from '${root}src/plugins/alerts/index.ts';`,
      `import { alertRaised } from '${root}src/core/contracts/alerts.ts';`,
    ],
  );
  const place = ['--data-dir', dataDir, '--config', config];
  const until = async (what: string, holds: () => unknown) => {
    const end = performance.now() + limitMs;
    while (!holds()) {
      if (performance.now() > end) throw new Error(`it did not come about: ${what}`);
      await delay(10);
    }
  };
  return {
    until,
    async start() {
      const { child, ended, err } = spawnHoldfast(t, ['start', ...place], { cwd });
      await until('it runs', () => child.exitCode !== null || readRuntimeFile(dataDir)?.pid === child.pid);
      t.is(child.exitCode, null, err());
      return async (signal) => {
        child.kill(signal);
        await ended;
      };
    },
    async raise(name) {
      const answer = await postControl(dataDir, '/raise', { name }, AbortSignal.timeout(20_000));
      t.is(answer.status, 200);
    },
    holdfast: (...argv) => call([...argv, ...place], { cwd }),
  };
}
