import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Scope } from './scope.ts';

/** Keeps the log of a data folder from taking anything, as a full disk does. @returns lets it go on; so does the end of the test */
export function holdLog(t: Scope, dataDir: string): () => void {
  const database = new DatabaseSync(join(dataDir, 'log.db'));
  database.exec('PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE');
  const release = () => {
    if (database.isOpen) database.close();
  };
  t.teardown(release);
  return release;
}
