import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SIGNAL_TABLES, type SignalTable } from '../../src/core/contracts/columnar-tables.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { Database, type DatabaseDependencies } from '../../src/plugins/columnar/database.ts';
import { EmbeddedEngine } from '../../src/plugins/columnar/engine/embedded.ts';
import { EMBEDDED_DATABASE } from '../../src/plugins/columnar/engine/grants.ts';

/** The embedded engine of one test file, with the tables made: a process can have but one folder open. */
export interface ColumnarRig {
  readonly database: Database;
  readonly engine: EmbeddedEngine;
  readonly folder: string;
  /** Empties tables, all unless told. */
  empty(...tables: SignalTable[]): Promise<void>;
  /** Call it in `test.after.always`. */
  close(): Promise<void>;
}

/**
 * @example
 * let rig: ColumnarRig;
 * test.before(async () => { rig = await openColumnar(); });
 * test.after.always(() => rig.close());
 */
export async function openColumnar(parts: Partial<DatabaseDependencies> = {}): Promise<ColumnarRig> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-columnar-'));
  const engine = await EmbeddedEngine.open(join(folder, 'columnar'));
  const schema = { database: EMBEDDED_DATABASE, retentionDays: 30, replicas: 1, isDurable: true };
  const database = new Database({ engine, clock: systemClock, schema, ...parts });
  await database.schema('otel_logs');
  const bounds = { seconds: 10, signal: new AbortController().signal };
  // Rows of long ago, and those whose time no calendar knows, are to be seen before they are dropped for their age.
  await engine.command('SYSTEM STOP TTL MERGES', bounds);
  return {
    database,
    engine,
    folder,
    async empty(...tables) {
      for (const table of tables.length > 0 ? tables : SIGNAL_TABLES)
        await engine.command(`TRUNCATE TABLE ${EMBEDDED_DATABASE}.${table}`, bounds);
    },
    async close() {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
