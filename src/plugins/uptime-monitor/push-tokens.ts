import { hash, randomBytes } from 'node:crypto';
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../../core/host/logging/logger.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { createSecretFile } from '../../core/kernel/secret-file.ts';

/** Tokens that are read between two yields to the event loop. */
const READS_PER_BATCH = 20;
/** Missing tokens that a start makes itself; each is made durable, which takes its time. */
const MADE_AT_START = 100;
/** A file that is being replaced is left alone for so long, milliseconds. */
const QUIET_MS = 100;

/**
 * The push tokens of the monitors, one file each (`<folder>/<name>`, mode 0600), made where there is none and read again
 * when it is replaced. Only hashes are kept in memory: the time of a look-up by hash reveals nothing about the token.
 */
export class PushTokens {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #byDigest = new Map<string, string>();
  readonly #digests = new Map<string, string>();
  readonly #changed = new Set<string>();
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#logger = logger;
  }

  /**
   * Reads the tokens and makes those that are missing. Of very many the last are made after it has resolved: nobody can
   * have a token that is not made yet.
   *
   * @throws HF_CONFIG_SECRET_* a file cannot be used
   */
  async load(names: readonly string[], signal: AbortSignal): Promise<void> {
    const missing: string[] = [];
    for (const [index, name] of names.entries()) {
      if (index % READS_PER_BATCH === READS_PER_BATCH - 1) await yieldToEventLoop();
      signal.throwIfAborted();
      if (missing.length >= MADE_AT_START && !existsSync(join(this.#folder, name))) {
        missing.push(name);
        continue;
      }
      if (this.#readOrCreate(name)) missing.push(name);
    }
    this.#watch(new Set(names));
    void this.#make(missing.slice(MADE_AT_START));
  }

  /** @returns whose token it is */
  nameOf(token: string): string | undefined {
    return this.#byDigest.get(hash('sha256', token, 'base64'));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#watcher?.close();
  }

  /** @returns whether the file did not exist and was created */
  #readOrCreate(name: string): boolean {
    const file = join(this.#folder, name);
    const isMade = createSecretFile(file, Buffer.from(`${randomBytes(24).toString('base64url')}\n`));
    const key = hash('sha256', readTokenFile(file), 'base64');
    const before = this.#digests.get(name);
    if (before === key) return isMade;
    if (before !== undefined) {
      if (this.#byDigest.get(before) === name) this.#byDigest.delete(before);
      this.#logger.info({ monitor: name }, 'uptime-monitor.token_replaced');
    }
    this.#digests.set(name, key);
    this.#byDigest.set(key, name);
    return isMade;
  }

  async #make(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await yieldToEventLoop();
      if (this.#isClosed) return;
      this.#readAgain(name);
    }
  }

  /** An unusable new file is ignored: the old token stays valid. */
  #readAgain(name: string): void {
    try {
      this.#readOrCreate(name);
    } catch (err) {
      this.#logger.warn({ err, monitor: name }, 'uptime-monitor.token_not_read');
    }
  }

  #watch(names: ReadonlySet<string>): void {
    if (names.size === 0) return;
    const look = () => {
      const changed = [...this.#changed];
      this.#changed.clear();
      for (const name of changed) this.#readAgain(name);
    };
    const failed = (err: unknown) => this.#logger.warn({ err }, 'uptime-monitor.tokens_not_watched');
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, (_event, name) => {
        if (name === null || !names.has(name)) return;
        this.#changed.add(name);
        clearTimeout(this.#timer);
        this.#timer = setTimeout(look, QUIET_MS).unref();
      });
      this.#watcher.on('error', failed);
    } catch (error) {
      failed(error);
    }
  }
}

/** Lets the event loop do other work. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
