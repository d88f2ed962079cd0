import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { restoreInto } from '../../../src/plugins/columnar/backups/backups.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { EmbeddedEngine } from '../../../src/plugins/columnar/engine/embedded.ts';
import { EMBEDDED_DATABASE } from '../../../src/plugins/columnar/engine/grants.ts';
import { tempDir } from '../../support/temp.ts';

/** What an older version leaves: a table in `default` with a row, and a backup of it. */
const OLDER = `
  import { Session } from 'chdb';
  const [folder, backups] = process.argv.slice(1);
  const session = new Session(folder, { connectionArgs: ['--backups.allowed_path=' + backups] });
  session.query("CREATE TABLE default.otel_logs (Timestamp DateTime64(9), Body String) ENGINE = MergeTree ORDER BY Timestamp");
  session.query("INSERT INTO default.otel_logs VALUES (now(), 'kept')");
  session.query("BACKUP DATABASE default TO File('" + backups + "/old.tar')");
  session.close();
`;

test('[O6,O20] tables of a version that kept them in default are moved with their rows, and its backups restored', async (t) => {
  const dir = tempDir(t);
  const folder = join(dir, 'columnar');
  execFileSync(process.execPath, ['--input-type=module', '-e', OLDER, folder, dir], {
    cwd: import.meta.dirname,
  });
  const restored = await restoreInto(
    join(dir, 'restored'),
    join(dir, 'old.tar'),
    AbortSignal.timeout(60_000),
  );
  t.like('tables' in restored ? restored.tables[0] : restored, { table: 'otel_logs', rows: '1' });
  const engine = await EmbeddedEngine.open(folder);
  t.teardown(() => engine.close());
  const schema = { database: EMBEDDED_DATABASE, retentionDays: 30, replicas: 1 };
  const database = new Database({ engine, clock: systemClock, schema });
  t.deepEqual((await database.ask('SELECT Body FROM otel_logs', 10)).rows, [['kept']]);
  t.deepEqual(await database.query("SELECT name FROM system.tables WHERE database = 'default'"), []);
});
