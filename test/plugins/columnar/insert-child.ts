/**
 * Opens the embedded engine on a folder and inserts small batches, telling each when it is acknowledged, until it is
 * killed or hears `end`. `insert-child.ts <folder>`
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { EmbeddedEngine } from '../../../src/plugins/columnar/engine/embedded.ts';
import { EMBEDDED_DATABASE } from '../../../src/plugins/columnar/engine/grants.ts';

const BATCH = 20;
const [, , folder = ''] = process.argv;
let ending = false;
createInterface({ input: process.stdin }).on('line', () => {
  ending = true;
  process.stdin.destroy();
});

try {
  const engine = await EmbeddedEngine.open(folder);
  const schema = { database: EMBEDDED_DATABASE, retentionDays: 30, replicas: 1, isDurable: true };
  const database = new Database({ engine, clock: systemClock, schema });
  for (let from = 0; !ending; from += BATCH) {
    const Timestamp = new Date().toISOString();
    const rows = Array.from({ length: BATCH }, (_, at) => ({ Timestamp, Body: String(from + at) }));
    await database.insert('otel_logs', rows, { token: `from-${from}` });
    process.stdout.write(`acknowledged ${from + BATCH}\n`);
  }
  await engine.close();
} catch (error) {
  process.stdout.write(`refused ${isCoded(error) ? error.code : String(error)}\n`);
  process.stdin.destroy();
}
