import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { CORE_TABLES, errorTables, ownDefinitions } from '../../../../scripts/reference.ts';
import { CliError } from '../../../../src/cli/errors.ts';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { errorTablesOf } from '../../../../src/core/host/plugin/definition.ts';
import { isCoded, toErrorBody } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../../../src/core/kernel/errors/kernel-error.ts';

const root = new URL('../../../../', import.meta.url);
const tables = errorTables(await ownDefinitions());
const codes = Object.keys(tables);

/** Codes that the files of these folders raise: quoted, outside the table, and not only compared with. */
function codesRaisedIn(...folders: readonly string[]): Set<string> {
  const found = new Set<string>();
  const files = folders.flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map((name) => folder + name),
  );
  for (const file of files) {
    if (!/\.(ts|js|mjs)$/.test(file) || file.includes('errors/table/') || file.endsWith('/errors.ts'))
      continue;
    const source = readFileSync(new URL(file, root), 'utf8');
    for (const match of source.matchAll(/(isCoded\([^()]*, |[!=]== )?'(HF_[A-Z0-9_]+)'/g)) {
      if (match[1] === undefined && match[2]) found.add(match[2]);
    }
  }
  return found;
}

test('every code raised anywhere is in the table, and every code of the table is raised somewhere', (t) => {
  const raised = codesRaisedIn('src/', 'bin/', 'scripts/');
  t.deepEqual(
    [...raised].filter((code) => !codes.includes(code)),
    [],
    'not in the table',
  );
  t.deepEqual(
    codes.filter((code) => !raised.has(code)),
    [],
    'in the table, but never raised',
  );
});

test('the kernel raises codes of its own table only, and each code of a core table is raised in its layer', (t) => {
  const kernelRaises = codesRaisedIn('src/core/kernel/');
  t.deepEqual(
    [...kernelRaises].filter((code) => !(code in KernelError.table)),
    [],
  );
  const layers = [
    { table: KernelError.table, raised: kernelRaises },
    { table: HostError.table, raised: codesRaisedIn('src/core/host/') },
    { table: CliError.table, raised: codesRaisedIn('src/cli/', 'bin/', 'scripts/') },
  ];
  for (const { table, raised } of layers) {
    t.deepEqual(
      Object.keys(table).filter((code) => !raised.has(code)),
      [],
    );
  }
});

test('no code is in two tables', async (t) => {
  const all = [...CORE_TABLES, ...(await ownDefinitions()).flatMap((plugin) => errorTablesOf(plugin))];
  const tables = [...new Set(all)].map((table) => Object.keys(table));
  t.deepEqual(tables.flat().toSorted(), [...new Set(tables.flat())].toSorted());
});

test('every entry says what happened and what fixes it, as sentences, with an HTTP status', (t) => {
  for (const [code, { what, remedy, status }] of Object.entries(tables)) {
    t.regex(code, /^HF_[A-Z0-9]+(_[A-Z0-9]+)*$/);
    t.regex(what, /^[A-Z{`].*[.}]$/, code);
    t.regex(remedy, /^[A-Z{`].*[.}]$/, code);
    t.true(status >= 400 && status < 600, code);
  }
});

test('an error fills its sentences from its details, and shows what is missing as ?', (t) => {
  const error = new HostError('HF_PLUGIN_MISSING', { plugin: 'reconciler', token: 'router.api' });
  t.is(error.what, 'Plugin reconciler needs router.api, which no enabled plugin provides.');
  t.is(error.message, `HF_PLUGIN_MISSING: ${error.what}`);
  t.regex(new HostError('HF_PLUGIN_MISSING').what, /^Plugin \? needs \?/);
  t.is(error.status, 500);
});

test('an error that is not ours shows as HF_INTERNAL, without its text', (t) => {
  const body = toErrorBody(new Error('password=hunter2'));
  t.is(body.code, 'HF_INTERNAL');
  t.false(JSON.stringify(body).includes('hunter2'));
  t.false(isCoded(new Error('HF_INTERNAL')));
});
