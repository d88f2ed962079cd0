import { lstatSync, rmSync, statfsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bus } from '../../../bus/bus.ts';
import { alertRaised } from '../../contracts/alerts.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { Logger } from '../logging/logger.ts';
import { sizeText } from '../size.ts';

const MIB = 1024 * 1024;
/** It is made when three times as much is free, so that it never is what fills the disk. */
const ROOM = 3;
/** A process that ends soon needs none. */
const FIRST_LOOK_MS = 5_000;
const LOOK_MS = 30_000;
/** What SQLite and the system say of a full disk, and of a quota that is used up. */
const FULL = /full|ENOSPC|EDQUOT|no space|quota/i;
const ALERT = 'log.reserve_used';

/** Name of the reserve in the data folder. */
const RESERVE_FILE = 'disk-reserve';

interface Parts {
  readonly log: Pick<EventLog, 'onFrozen'>;
  readonly bus: Pick<Bus, 'publish'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A type, because only types count as JSON. */
export type ReserveFact = {
  /** For people. */
  readonly text: string;
  /** False while there is none. */
  readonly ok: boolean;
  readonly state: 'held' | 'not_made_yet' | 'given_back' | 'no_room';
  readonly bytes: number;
  readonly reason?: string;
};

/**
 * A file that keeps room on the disk of the log. It is deleted when the log cannot be written because the disk is full:
 * decisions go on, and a stop is still recorded, while somebody makes room. When there is room it is made again.
 */
export class DiskReserve {
  readonly #file: string;
  readonly #dataDir: string;
  readonly #bytes: number;
  readonly #parts: Parts;
  #state: ReserveFact['state'] = 'not_made_yet';
  #cancel: (() => void) | undefined;
  #making: Promise<void> | undefined;
  #stopped = false;

  /** @param bytes its size; it looks at the disk from five seconds after */
  constructor(dataDir: string, bytes: number, parts: Parts) {
    this.#dataDir = dataDir;
    this.#file = join(dataDir, RESERVE_FILE);
    this.#bytes = bytes;
    this.#parts = parts;
    if (lstatSync(this.#file, { throwIfNoEntry: false })?.size === bytes) this.#state = 'held';
    else rmSync(this.#file, { force: true });
    // Heard until the log is closed: the last records of a stop may need it.
    parts.log.onFrozen((reason) => {
      if (reason !== undefined && FULL.test(reason)) this.#giveBack(reason);
    });
    this.#cancel = parts.clock.after(FIRST_LOOK_MS, () => void this.look());
  }

  fact(): ReserveFact {
    const state = this.#state;
    const ok = state === 'held' || state === 'not_made_yet';
    const base = { ok, state, bytes: this.#bytes };
    const size = sizeText(this.#bytes);
    if (ok)
      return {
        ...base,
        text: `${size} are ${state === 'held' ? '' : 'not yet '}held back for a full disk`,
      };
    const free = `${sizeText(freeOn(this.#dataDir))} are free`;
    const reason =
      state === 'given_back'
        ? `the disk is full, and the log uses its reserve of ${size} (${free}): make room`
        : `the disk has no room for the reserve of ${size} (${free}, three times as much is needed)`;
    return { ...base, reason, text: reason };
  }

  /** Makes the reserve where it is missing and there is room. */
  async look(): Promise<void> {
    this.#cancel?.();
    if (this.#stopped) return;
    if (this.#state !== 'held') {
      this.#making ??= this.#make().finally(() => {
        this.#making = undefined;
      });
      await this.#making;
    }
    if (!this.#stopped) this.#cancel = this.#parts.clock.after(LOOK_MS, () => void this.look());
  }

  /** Looks no more; what is held stays for the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#making;
  }

  #giveBack(reason: string): void {
    if (this.#state !== 'held') return;
    rmSync(this.#file, { force: true });
    this.#state = 'given_back';
    const { logger, bus } = this.#parts;
    logger.error({ reason, bytes: this.#bytes }, 'log.reserve_used');
    const text = 'The disk is full. The event log goes on in the reserve that was kept for it: make room.';
    bus.publish(alertRaised, { name: ALERT, severity: 'critical', text, labels: { state: 'firing' } });
  }

  async #make(): Promise<void> {
    if (freeOn(this.#dataDir) < ROOM * this.#bytes) {
      if (this.#state === 'not_made_yet') this.#state = 'no_room';
      return;
    }
    const draft = `${this.#file}.new`;
    try {
      await writeZeros(draft, this.#bytes, () => this.#stopped);
      if (this.#stopped) return await rm(draft, { force: true });
      await rename(draft, this.#file);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      this.#parts.logger.warn({ err: error }, 'log.reserve_not_made');
      return;
    }
    const wasUsed = this.#state === 'given_back';
    this.#state = 'held';
    if (!wasUsed) return;
    const text = 'There is room on the disk again, and the reserve of the event log is made anew.';
    this.#parts.bus.publish(alertRaised, {
      name: ALERT,
      severity: 'info',
      text,
      labels: { state: 'resolved' },
    });
  }
}

/** Bytes that a user may still write to the disk of a folder. */
export function freeOn(dataDir: string): number {
  const { bavail, bsize } = statfsSync(dataDir);
  return bavail * bsize;
}

/** A file with blocks of its own on the disk; a longer length alone would keep no room. */
async function writeZeros(file: string, bytes: number, ended: () => boolean): Promise<void> {
  const zeros = Buffer.alloc(Math.min(bytes, MIB));
  const handle = await open(file, 'w', 0o600);
  try {
    for (let done = 0; done < bytes && !ended(); done += zeros.length) {
      await handle.write(zeros, 0, Math.min(zeros.length, bytes - done));
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}
