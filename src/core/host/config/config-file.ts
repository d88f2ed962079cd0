import { hash } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { OptionsFile } from '../plugin/definition.ts';
import type { Environment } from './environment.ts';
import { loadConfig } from './load.ts';

/** An editor that saves touches a file several times. */
const QUIET_MS = 200;

/** A `plugins.config.ts`, read anew whenever a plugin asks. */
export class ConfigFile implements OptionsFile {
  readonly file: string;
  readonly #env: Environment;

  constructor(file: string, env: Environment = process.env) {
    this.file = file;
    this.#env = env;
  }

  async optionsOf(plugin: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { plugins } = await loadConfig({ file: this.file, env: this.#env, fresh: true });
    return plugins.find(({ definition }) => definition.name === plugin)?.options;
  }

  /** Watches the folder, for editors put a new file in the old one's place. It does not keep the process alive. */
  watch(changed: () => void, failed: (error: unknown) => void): () => void {
    let timer: NodeJS.Timeout | undefined;
    let seen = this.#digest();
    const look = () => {
      const now = this.#digest();
      // A file that is gone for a moment is being saved.
      if (now === undefined || now === seen) return;
      seen = now;
      changed();
    };
    let watcher: FSWatcher | undefined;
    try {
      watcher = watch(dirname(this.file), { persistent: false }, (_event, name) => {
        if (name !== null && name !== basename(this.file)) return;
        clearTimeout(timer);
        timer = setTimeout(look, QUIET_MS).unref();
      });
      watcher.on('error', failed);
    } catch (error) {
      failed(error);
    }
    return () => {
      clearTimeout(timer);
      watcher?.close();
    };
  }

  #digest(): string | undefined {
    try {
      return hash('sha256', readFileSync(this.file));
    } catch {
      return undefined;
    }
  }
}
