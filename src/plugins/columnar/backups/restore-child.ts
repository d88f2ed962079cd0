/**
 * Restores a backup into a scratch folder and prints what its tables hold. A process of its own: a process can have but
 * one folder open, and an engine that meets damaged files may end its process.
 */

import { Session } from 'chdb';
import { createChdbConnection } from 'chdb/connection';
import { type Ask, digestOf, tablesOf } from './digest.ts';

/** The first line of what the engine said, without its own code. */
const reasonIn = (text: string): string =>
  (text.split('\n')[0] ?? '').replace(/^Code: \d+\. DB::Exception:\s*/, '').slice(0, 300);

const [folder = '', allowed = '', file = '', database = ''] = process.argv.slice(2);

const anchor = new Session(folder, { connectionArgs: [`--backups.allowed_path=${allowed}`] });
const { chdb } = createChdbConnection({ path: folder });
const ask: Ask = async (sql) => {
  const lines = (await chdb.queryAsync(sql, { format: 'JSONEachRow' })).text().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
};

try {
  const from = `FROM File('${file.replace(/[\\']/g, '\\$&')}') SETTINGS allow_different_database_def = 1`;
  await chdb.queryAsync(`RESTORE DATABASE ${database} ${from}`).catch(async (error: Error) => {
    if (!/NOT_FOUND|not found/.test(error.message)) throw error;
    // Versions before 0.2.0 kept the tables there.
    await chdb.queryAsync(`RESTORE DATABASE default AS ${database} ${from}`);
  });
  const tables = [];
  for (const table of await tablesOf(database, ask)) tables.push(await digestOf(database, table, ask));
  process.stdout.write(JSON.stringify({ tables }));
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  process.stdout.write(JSON.stringify({ reason: reasonIn(reason) }));
}
anchor.close();
process.exit(0);
