/**
 * `npm run cluster-simulation`: what happens with many hosts, and over several sites, in virtual time and from a seed.
 * With `-- --write` the figures enter docs/cluster.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { simulationTables, withSimulation } from './tables.ts';

const tables = simulationTables();
console.log(tables);
if (process.argv.includes('--write')) {
  const page = new URL('../../docs/cluster.md', import.meta.url);
  writeFileSync(page, withSimulation(readFileSync(page, 'utf8'), tables));
}
