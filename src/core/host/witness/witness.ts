import { constants } from 'node:fs';
import { open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isoTime } from '../../kernel/clock.ts';
import {
  isWitnessFile,
  type WitnessedHead,
  witnessFileOf,
  witnessLine,
} from '../../kernel/log/witnessed-heads.ts';
import { HttpCallError, HttpClient } from '../http/client.ts';
import { readTokenFile } from '../secrets/token-file.ts';
import type { WitnessSettings } from './settings.ts';

/** A place of the operator's, where what was sent cannot be changed by who has this machine. */
export interface Witness {
  /** For people: a path or an address, without secrets. */
  readonly place: string;
  /**
   * Takes heads, oldest first, and has them for good when this resolves.
   *
   * @throws Error whose message says why not; they are sent again then
   */
  send(heads: readonly WitnessedHead[], signal: AbortSignal): Promise<void>;
}

export function openWitness(settings: WitnessSettings): Witness {
  if ('folder' in settings) return new FolderWitness(settings.folder, settings.keepDays ?? KEEP_DAYS);
  return 'file' in settings ? new FileWitness(settings.file) : new WebhookWitness(settings);
}

/** Without blocking, for a pipe without a reader would keep the thread for ever. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** A file to which lines are appended, each on the disk before the next. */
class FileWitness implements Witness {
  readonly place: string;
  /** A write that a mount which hangs has not ended yet. */
  #pending: Promise<void> | undefined;

  constructor(file: string) {
    this.place = file;
  }

  async send(heads: readonly WitnessedHead[], signal: AbortSignal): Promise<void> {
    // Each that hangs keeps one of the few threads that all files share.
    if (this.#pending !== undefined) throw new Error('the last write has not ended: its mount may hang');
    this.#pending = this.#append(heads, signal).finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #append(heads: readonly WitnessedHead[], signal: AbortSignal): Promise<void> {
    // Opened each time: a mount that went away and came back is another file.
    const handle = await open(this.place, APPEND, 0o600);
    try {
      signal.throwIfAborted();
      const stats = await handle.stat();
      if (!stats.isFile()) throw new Error('it is no regular file');
      const { size } = stats;
      const torn = size > 0 && !(await this.#endsWithNewline(size));
      await handle.write(`${torn ? '\n' : ''}${heads.map(witnessLine).join('')}`);
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** A crash may have cut the last line short: the next one begins on a line of its own. */
  async #endsWithNewline(size: number): Promise<boolean> {
    if ((await stat(this.place)).size !== size) return true; // somebody else appends, too
    const handle = await open(this.place, 'r');
    try {
      const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
      return buffer[0] === 0x0a;
    } finally {
      await handle.close();
    }
  }
}

const KEEP_DAYS = 400;
const DAY_MS = 86_400_000;

/** A folder with a file for each day, so that the head of a day is found by its name, and old days can go. */
class FolderWitness implements Witness {
  readonly place: string;
  readonly #keepDays: number;
  /** The newest day, with its file. */
  #today: { readonly day: string; readonly file: FileWitness } | undefined;

  constructor(folder: string, keepDays: number) {
    this.place = folder;
    this.#keepDays = keepDays;
  }

  async send(heads: readonly WitnessedHead[], signal: AbortSignal): Promise<void> {
    const days = Map.groupBy(heads, ({ at }) => isoTime(at).slice(0, 10));
    for (const [day, ofDay] of days) {
      const isNew = this.#today?.day !== day;
      if (isNew || !this.#today)
        this.#today = { day, file: new FileWitness(join(this.place, witnessFileOf(day))) };
      await this.#today.file.send(ofDay, signal);
      if (isNew) await this.#dropOld(day);
    }
  }

  /** Where the mount takes nothing away, everything stays. */
  async #dropOld(day: string): Promise<void> {
    const oldest = witnessFileOf(isoTime(Date.parse(day) - this.#keepDays * DAY_MS).slice(0, 10));
    const names = await readdir(this.place).catch(() => []);
    const old = names.filter((name) => isWitnessFile(name) && name <= oldest);
    await Promise.allSettled(old.map((name) => rm(join(this.place, name))));
  }
}

const TIMEOUT_MS = 10_000;

/** Gets heads by POST: `{ "heads": [ … ] }`, each as the line of a file has it. Any 2xx says that it has them. */
class WebhookWitness implements Witness {
  readonly place: string;
  readonly #url: string;
  readonly #tokenFile: string | undefined;
  readonly #http = new HttpClient({
    timeoutMs: TIMEOUT_MS,
    answerLimit: 4_096,
    excess: 'cut',
    keepAlive: false,
  });

  constructor({ url, tokenFile }: Extract<WitnessSettings, { url: string }>) {
    this.#url = url;
    this.#tokenFile = tokenFile;
    this.place = new URL(url).origin; // a path or a query may be a secret
  }

  async send(heads: readonly WitnessedHead[], signal: AbortSignal): Promise<void> {
    const token = this.#tokenFile === undefined ? undefined : readTokenFile(this.#tokenFile);
    try {
      const { ok, status } = await this.#http.call({
        method: 'POST',
        url: this.#url,
        json: { heads: heads.map((head) => JSON.parse(witnessLine(head))) },
        headers: {
          'user-agent': 'holdfast',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        secretIn: 'url',
        signal,
      });
      if (!ok) throw new Error(`it answered ${status}`);
    } catch (error) {
      throw error instanceof HttpCallError ? new Error(error.reason, { cause: error }) : error;
    }
  }
}
