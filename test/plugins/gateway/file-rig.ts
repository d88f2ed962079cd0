import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { ConfigFile } from '../../../src/core/host/config/config-file.ts';
import { loadConfig } from '../../../src/core/host/config/load.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/index.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

const { signal } = new AbortController();

/** A runtime of the gateway alone whose configuration is a file. */
export class FileRig extends Rig {
  readonly folder: string;

  constructor(runtime: Runtime, dataDir: string, folder: string) {
    super(runtime, dataDir, []);
    this.folder = folder;
  }

  static async open(
    t: ExecutionContext<unknown>,
    routes: string,
    folder = tempDir(t),
    before: Before = NOTHING,
    others: (dataDir: string) => readonly PluginEntry[] = () => [],
  ): Promise<FileRig> {
    writeConfig(folder, routes, before);
    const { plugins, file } = await loadConfig({ cwd: folder, env: {}, fresh: true });
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const beside = others(dataDir).map(({ definition }) => ({ definition, options: {} }));
    const runtime = createRuntime({
      plugins: [...plugins, ...beside],
      dataDir,
      configFile: new ConfigFile(file, {}),
      logger: createLogger({ level: 'silent' }),
    });
    await runtime.start();
    t.teardown(() => runtime.stop('test'));
    return new FileRig(runtime, dataDir, folder);
  }

  write(routes: string, before: Before = NOTHING): void {
    writeConfig(this.folder, routes, before);
  }

  async control(path: string, body: object = {}): Promise<{ status: number; body: any }> {
    return postControl(this.dataDir, path, body, signal);
  }

  async reload(routes: string, before: Before = NOTHING): Promise<{ status: number; body: any }> {
    this.write(routes, before);
    return this.control('/gateway/reload');
  }

  /** Upstreams by name, as they serve. */
  async serving(): Promise<Record<string, string>> {
    const { body } = await this.control('/gateway/routes');
    return Object.fromEntries(body.routes.map(({ name, upstream }: any) => [name, upstream]));
  }
}

/** What else stands in the file. */
interface Before {
  readonly imports: string;
  /** Before the gateway in the list. */
  readonly plugins: string;
}

const NOTHING: Before = { imports: '', plugins: '' };

function writeConfig(folder: string, routes: string, { imports, plugins }: Before): void {
  writeFileSync(
    join(folder, 'plugins.config.ts'),
    `import { defineConfig } from 'holdfast';
     import { credentialFree, gateway, overwrite, relay } from 'holdfast/plugins/gateway';
     import { secretsFolder } from 'holdfast/plugins/secrets';
     ${imports}
     export default defineConfig({ plugins: [
       ${plugins}
       secretsFolder({ folder: ${JSON.stringify(join(folder, 'secrets'))} }),
       gateway({ port: 0, probeEveryMs: 0, routes: [${routes}] }),
     ] });`,
  );
}
