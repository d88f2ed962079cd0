import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { isGenuine, type LogKey } from './signing.ts';

/** Records that a repair could not save. */
export interface MissingRange {
  /** Inclusive. */
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** The event by which a log says that it was repaired, and what is missing since; its actor is that of checkpoints. */
export const REPAIRED = 'REPAIRED';

/** Only a log that was repaired has it. Each range is signed: who removes records cannot say that a repair did. */
const TABLE = `
  CREATE TABLE missing (
    "from" INTEGER PRIMARY KEY, "to" INTEGER NOT NULL, reason TEXT NOT NULL, key TEXT NOT NULL, signature TEXT NOT NULL
  ) STRICT
`;

export function insertMissing(db: DatabaseSync, key: LogKey, ranges: readonly MissingRange[]): void {
  db.exec(TABLE);
  const insert = db.prepare(
    'INSERT INTO missing ("from", "to", reason, key, signature) VALUES (?, ?, ?, ?, ?)',
  );
  for (const range of ranges) {
    const { signature } = key.sign('missing', range.from, digestOf(range));
    insert.run(range.from, range.to, range.reason, key.text, signature);
  }
}

/** The ranges that a repair signed as missing, in order. What nobody signed does not count. */
export function readMissing(db: DatabaseSync): MissingRange[] {
  const rows = db.prepare('SELECT * FROM missing ORDER BY "from"').all();
  return rows.flatMap((row) => {
    const range = { from: Number(row.from), to: Number(row.to), reason: String(row.reason) };
    const signed = {
      seq: range.from,
      hash: digestOf(range),
      key: String(row.key),
      signature: String(row.signature),
    };
    return isGenuine('missing', signed) ? [range] : [];
  });
}

function digestOf({ to, reason }: MissingRange): string {
  return hash('sha256', `${to}\n${reason}`, 'hex');
}
