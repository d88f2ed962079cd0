import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../../kernel/durable-file.ts';
import { isObject } from '../../kernel/json.ts';
import type { NotedFile } from './files.ts';
import { type Finding, findingSchema } from './findings.ts';

/** The digests of the files of a data folder, in `checksums.json`: a file that was noted once must not change by itself. */
export interface Ledger {
  readonly files: Map<string, NotedFile>;
  /** Whether the folder was left by a stop, so that databases must be as they were noted, too. */
  readonly stopped: boolean;
  /** Archives that were read record by record, as they were noted: their digest is enough from then on. */
  readonly read: Set<string>;
  /** What the last start found before it opened anything; in here until a check has recorded it. */
  readonly found: readonly Finding[];
}

/** Earlier versions wrote no time at which the file was made. */
type Row = readonly [inode: number, size: number, modified: number, digest: string, made?: number];

const FORMAT = 1;
const LEDGER = 'checksums.json';

/** The ledger of a folder of which nothing was noted yet. */
export function emptyLedger(): Ledger {
  return { files: new Map(), stopped: false, read: new Set(), found: [] };
}

/** What a ledger that is damaged itself is reported as. */
export const DAMAGED_LEDGER: Finding = {
  kind: 'damaged',
  file: LEDGER,
  reason: 'its own checksum does not fit; what it said of the other files is lost',
};

/** @returns an empty one where there is none yet; undefined when it is damaged itself */
export function loadLedger(dataDir: string): Ledger | undefined {
  if (!existsSync(ledgerFile(dataDir))) return emptyLedger();
  try {
    const [body = '', digest] = readFileSync(ledgerFile(dataDir), 'utf8').split('\n');
    if (digestOf(body) !== digest) return undefined;
    const value: unknown = JSON.parse(body);
    if (!isObject(value) || value.format !== FORMAT || !isObject(value.files)) return undefined;
    const files = Object.entries(value.files as Record<string, Row>).map(
      ([path, [inode, size, modified, digest, made]]) =>
        [path, { inode, made, size, modified, digest }] as const,
    );
    const read = new Set(Array.isArray(value.read) ? value.read.map(String) : []);
    const found = z.array(findingSchema).parse(value.found);
    return { files: new Map(files), stopped: value.stopped === true, read, found };
  } catch {
    return undefined;
  }
}

/** Writes it whole or not at all. @throws the error of the disk */
export function saveLedger(dataDir: string, { files, stopped, read, found }: Ledger): void {
  const rows = Array.from(files, ([path, { inode, made, size, modified, digest }]) => [
    path,
    [inode, size, modified, digest, ...(made === undefined ? [] : [made])],
  ]);
  const body = JSON.stringify({
    format: FORMAT,
    stopped,
    found,
    read: [...read],
    files: Object.fromEntries(rows),
  });
  replaceFile(ledgerFile(dataDir), `${body}\n${digestOf(body)}\n`);
}

/** Databases may be other ones from now on: a command writes the folder while nothing runs. */
export function forgetStop(dataDir: string): void {
  const ledger = loadLedger(dataDir);
  if (ledger?.stopped) saveLedger(dataDir, { ...ledger, stopped: false });
}

function ledgerFile(dataDir: string): string {
  return join(dataDir, LEDGER);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
