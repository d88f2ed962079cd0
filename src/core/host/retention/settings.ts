import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../kernel/durable-file.ts';
import { isObject } from '../../kernel/json.ts';

/** What a runtime archives and deletes by itself. A limit that is absent does not hold. */
export interface RetentionSettings {
  /** Absolute path; where archives go. */
  readonly folder: string;
  /** The most that the live log holds, bytes. */
  readonly keepBytes?: number | undefined;
  /** The oldest that a record of the live log may be, milliseconds. */
  readonly olderThanMs?: number | undefined;
  /** The most that the archives hold, bytes. */
  readonly keepArchiveBytes?: number | undefined;
}

const GIB = 2 ** 30;
const DAY_MS = 86_400_000;

/** The limits unless the configuration says otherwise. */
export const DEFAULT_LIMITS = {
  keepBytes: GIB,
  olderThanMs: 90 * DAY_MS,
  keepArchiveBytes: 4 * GIB,
} as const;

/** Where archives go unless somebody says otherwise. */
export function archiveFolder(dataDir: string): string {
  return join(dataDir, 'archive');
}

/** Notes the settings in the data folder, for commands that read it without the configuration. */
export function noteSettings(dataDir: string, settings: RetentionSettings): void {
  const { folder, keepBytes, olderThanMs, keepArchiveBytes } = settings;
  const text = `${JSON.stringify({ folder, keepBytes, olderThanMs, keepArchiveBytes })}\n`;
  const file = settingsFile(dataDir);
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  replaceFile(file, text);
}

/** The settings of the newest run on a data folder; without limits where there was none, or it had none. */
export function notedSettings(dataDir: string): RetentionSettings {
  let noted: unknown;
  try {
    noted = JSON.parse(readFileSync(settingsFile(dataDir), 'utf8'));
  } catch {
    noted = undefined; // it has never run, or somebody edited the file
  }
  const { folder, keepBytes, olderThanMs, keepArchiveBytes } = isObject(noted) ? noted : {};
  const limit = (value: unknown) => (typeof value === 'number' ? value : undefined);
  return {
    folder: typeof folder === 'string' ? folder : archiveFolder(dataDir),
    keepBytes: limit(keepBytes),
    olderThanMs: limit(olderThanMs),
    keepArchiveBytes: limit(keepArchiveBytes),
  };
}

function settingsFile(dataDir: string): string {
  return join(dataDir, 'retention.json');
}

/** What the log may still write when the disk is full: some days of an idle instance, and an orderly stop. */
export const USUAL_RESERVE_BYTES = 64 * 1024 * 1024;
