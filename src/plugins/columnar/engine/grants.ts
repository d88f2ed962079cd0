import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { escapeMarkup } from '../../../core/host/http/html.ts';
import { AGENT_DATABASE } from '../agent-tables.ts';

/**
 * The database of the signals in the embedded engine. The engine's own `default` also shows every file that the process can read as
 * a table, so nothing but tables of older versions is in it.
 */
export const EMBEDDED_DATABASE = 'telemetry';

/**
 * What any connection of this process may do, the connections for our own work too: keep signals in one database, back it up, keep
 * agents' tables in another, and look at itself. Files, addresses, other servers, programs and dictionaries are not among it.
 */
const GRANTS = [
  `SELECT, INSERT, ALTER, CREATE, DROP, SHOW, CHECK, TRUNCATE, OPTIMIZE, BACKUP ON ${EMBEDDED_DATABASE}.*`,
  `SELECT, INSERT, ALTER, CREATE, DROP, SHOW, TRUNCATE ON ${AGENT_DATABASE}.*`,
  // Tables of versions that kept them there are moved.
  'SELECT, INSERT, CREATE, DROP, SHOW ON default.*',
  'SELECT ON system.*',
  'TABLE ENGINE ON MergeTree',
  'KILL QUERY, SYSTEM MERGES, SYSTEM TTL MERGES, SYSTEM FLUSH LOGS ON *.*',
];

/**
 * Writes the engine's configuration into its folder.
 *
 * @returns the argument by which the engine starts with it
 */
export function grantsArgument(folder: string): string {
  const file = join(folder, 'grants.xml');
  const queries = GRANTS.map((grant) => `<query>GRANT ${grant}</query>`).join('\n        ');
  const text = `<clickhouse>
  <users_config>${escapeMarkup(file)}</users_config>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <password></password>
      <networks><ip>::1</ip><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <grants>
        ${queries}
      </grants>
    </default>
  </users>
</clickhouse>
`;
  writeFileSync(file, text, { mode: 0o600 });
  return `--config-file=${file}`;
}
