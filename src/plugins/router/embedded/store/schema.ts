import { join } from 'node:path';

/** Raised when the tables change. */
export const STORE_FORMAT = 1;

/**
 * A config is written once: the active one is a pointer to the newest entry of the history. `body` is sealed; what
 * stands beside it names fields and never values.
 */
export const TABLES = `
  CREATE TABLE IF NOT EXISTS configs (
    id INTEGER PRIMARY KEY,
    ncid TEXT NOT NULL,
    at INTEGER NOT NULL,
    op TEXT NOT NULL,
    who TEXT NOT NULL,
    changed TEXT NOT NULL,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS active (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    config INTEGER NOT NULL REFERENCES configs (id)
  ) STRICT;
`;

export const SELECT_ACTIVE = 'SELECT id, ncid, body FROM configs WHERE id = (SELECT config FROM active)';

/** The first config becomes an entry with the first write: until then there is nothing to go back to. */
export const SELECT_HISTORY = `
  SELECT ncid, at, op, who, changed FROM configs
  WHERE op <> 'seed' OR EXISTS (SELECT 1 FROM configs WHERE op <> 'seed') ORDER BY id DESC LIMIT ?
`;

export const SELECT_ENTRY = 'SELECT ncid, body FROM configs WHERE ncid = ? ORDER BY id DESC LIMIT 1';

export function storeFile(dataDir: string): string {
  return join(dataDir, 'router.db');
}

/** A write on its way to the worker; the body is sealed. */
export interface SaveRequest {
  readonly id: number;
  readonly expected: string | undefined;
  readonly ncid: string;
  readonly at: number;
  readonly op: string;
  readonly who: string;
  readonly changed: string;
  readonly body: Uint8Array;
}

/** Id 0 answers the start. `saved` is false when the store held another ncid than the expected one. */
export type SaveReply =
  | { readonly id: number; readonly ok: true; readonly saved: boolean }
  | { readonly id: number; readonly ok: false; readonly reason: string };
