// `npm run spec`: which tests prove which promise of docs/requirements.md.
//   npm run spec -- --write     fills the table's last column
//   npm run spec -- --quiet     prints only what is wrong, and a summary
// A test names the promises it proves in its title: scripts/titles.ts.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { testsWithIds } from './titles.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const table = fileURLToPath(new URL('../docs/requirements.md', import.meta.url));

const RANGES = { R: 40, O: 29, B: 11, G: 27, C: 15 };
const STATES = ['done', 'partly', 'open'];

const known = Object.entries(RANGES).flatMap(([letter, last]) =>
  Array.from({ length: last }, (_, index) => `${letter}${index + 1}`),
);
const problems = [];

/** id → [{ file, title }] */
function readTests() {
  const tests = new Map(known.map((id) => [id, []]));
  for (const { file, line, title, ids } of testsWithIds(root)) {
    for (const id of ids) {
      if (tests.has(id)) tests.get(id).push({ file, title });
      else problems.push(`${file}:${line} names ${id}, which is no promise of ours`);
    }
  }
  return tests;
}

function readRows(lines) {
  const rows = new Map();
  for (const [index, line] of lines.entries()) {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, id, promise, state, files] = cells;
    if (!/^[A-Z]\d+$/.test(id ?? '')) continue;
    if (cells.length !== 6) problems.push(`docs/requirements.md:${index + 1} ${id} has not four columns`);
    if (!known.includes(id)) problems.push(`docs/requirements.md:${index + 1} ${id} is out of range`);
    if (rows.has(id)) problems.push(`docs/requirements.md:${index + 1} ${id} is there twice`);
    if (!STATES.includes(state))
      problems.push(`docs/requirements.md:${index + 1} ${id} has state "${state}"`);
    rows.set(id, { index, promise, state, files });
  }
  return rows;
}

const write = process.argv.includes('--write');
const quiet = process.argv.includes('--quiet');
const tests = readTests();
const lines = readFileSync(table, 'utf8').split('\n');
const rows = readRows(lines);

for (const id of known) {
  const row = rows.get(id);
  if (row === undefined) {
    problems.push(`docs/requirements.md lacks ${id}`);
    continue;
  }
  const proofs = tests.get(id);
  if (!quiet) {
    console.log(`${id} ${row.state}`);
    for (const { file, title } of proofs) console.log(`    ${file}: ${title}`);
  }
  if (row.state === 'done' && proofs.length === 0) problems.push(`${id} is marked done and no test names it`);
  const files = [...new Set(proofs.map(({ file }) => file))].join(' ');
  if (write) lines[row.index] = `| ${id} | ${row.promise} | ${row.state} | ${files ? `${files} ` : ''}|`;
  else if (files !== row.files)
    problems.push(`${id}: the tests column is stale (remedy: npm run spec -- --write)`);
}
if (write) writeFileSync(table, lines.join('\n'));

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
const count = (state) => [...rows.values()].filter((row) => row.state === state).length;
const named = known.filter((id) => tests.get(id).length > 0).length;
console.log(
  `spec: ${known.length} promises, ${STATES.map((state) => `${count(state)} ${state}`).join(', ')}; ${named} named by tests`,
);
