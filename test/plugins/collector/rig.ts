import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type IngestKeys, IngestKeysToken } from '../../../src/core/contracts/ingest-keys.ts';
import { SecretsStoreToken } from '../../../src/core/contracts/secrets-store.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { call, type Finished } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { PATIENCE_MS } from '../../support/until.ts';

export type Options = NonNullable<Parameters<typeof collector>[0]>;

/** Patience that fits a test. */
export const quick: Options = {
  lookEveryMs: 20,
  // Long: a producer that moves is heard of at once.
  rotation: { lookMs: 60_000, refreshMs: 60_000, overlapMs: 600_000, adoptMs: 60_000, retryMs: 20 },
};

export interface Rig {
  readonly runtime: Runtime;
  readonly dir: string;
  readonly keys: IngestKeys;
  /** Runs `holdfast …` on its data folder. */
  holdfast(...argv: string[]): Promise<Finished>;
  /** State of the rotation. */
  state(): string;
}

/** A started runtime with the collector plugin, and a config file by which commands find it. */
export async function startRig(
  t: Scope,
  dir: string,
  options: Options = {},
  others: readonly PluginEntry[] = [secretsFolder()],
  clock?: Clock,
): Promise<Rig> {
  let keys: IngestKeys | undefined;
  const consumer = definePlugin({
    name: 'consumer',
    options: z.strictObject({}),
    requires: [IngestKeysToken],
    wants: [SecretsStoreToken],
    start(services) {
      keys = services.get(IngestKeysToken);
    },
    register() {},
  });
  const entries = [consumer(), collector({ ...quick, ...options }), ...others];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir: dir, logger, ...(clock && { clock }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const source = new URL('../../../src/', import.meta.url);
  writeFileSync(
    join(dir, 'plugins.config.ts'),
    `import { defineConfig } from '${new URL('index.ts', source)}';
import { collector } from '${new URL('plugins/collector/index.ts', source)}';
export default defineConfig({ plugins: [collector()] });`,
  );
  return {
    runtime,
    dir,
    keys: keys as unknown as IngestKeys,
    holdfast: (...argv) => call([...argv, '--data-dir', dir], { cwd: dir }),
    state: () =>
      String(runtime.services.actors.snapshot('collector.key_rotation/otel_ingest_api_key')?.value ?? 'idle'),
  };
}

export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`it did not come about: ${what}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}
