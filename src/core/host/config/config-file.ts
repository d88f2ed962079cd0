import { hash } from 'node:crypto';
import { readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { debounceTime, distinctUntilChanged, filter, map, Observable, skip, startWith } from 'rxjs';
import type { ConfiguredPlugin, OptionsFile } from '../plugin/definition.ts';
import type { Environment } from './environment.ts';
import { loadConfig } from './load.ts';

/** An editor that saves touches a file several times. */
const QUIET_MS = 200;

/** A `plugins.config.ts`, read anew whenever a plugin asks. @experimental */
export class ConfigFile implements OptionsFile {
  readonly file: string;
  readonly #env: Environment;

  constructor(file: string, env: Environment = process.env) {
    this.file = file;
    this.#env = env;
  }

  async plugins(): Promise<readonly ConfiguredPlugin[]> {
    const { plugins } = await loadConfig({ file: this.file, env: this.#env, fresh: true });
    return plugins;
  }

  /** Watches the folder, for editors put a new file in the old one's place. It does not keep the process alive. */
  watch(changed: () => void, failed: (error: unknown) => void): () => void {
    const subscription = changesIn(dirname(this.file))
      .pipe(
        filter((name) => name === null || name === basename(this.file)),
        debounceTime(QUIET_MS),
        map(() => this.#digest()),
        // A file that is gone for a moment is being saved.
        filter((digest) => digest !== undefined),
        startWith(this.#digest()),
        distinctUntilChanged(),
        skip(1),
      )
      .subscribe({ next: () => changed(), error: failed });
    return () => subscription.unsubscribe();
  }

  #digest(): string | undefined {
    try {
      return hash('sha256', readFileSync(this.file));
    } catch {
      return undefined;
    }
  }
}

/** The names of files that change in a folder; null if the system does not name the file. */
function changesIn(folder: string): Observable<string | null> {
  return new Observable((subscriber) => {
    const watcher = watch(folder, { persistent: false }, (_event, name) => subscriber.next(name));
    watcher.on('error', (error) => subscriber.error(error));
    return () => watcher.close();
  });
}
