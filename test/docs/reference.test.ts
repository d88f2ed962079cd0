import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { deliveredRegistrations, ownDefinitions, referencePages } from '../../scripts/reference.ts';

const root = new URL('../../', import.meta.url);
const text = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);

const registrations = await deliveredRegistrations();
const definitions = await ownDefinitions();
const pages = () => ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...filesOf('docs', '.md')];

for (const [path, expected] of Object.entries(referencePages(registrations, definitions))) {
  test(`${path} is what the code declares`, (t) => t.is(text(path), expected, 'run `npm run docs`'));
}

test('every feature stands in docs/architecture.md, and every plugin says what it is for and where that is described', (t) => {
  const architecture = text('docs/architecture.md');
  const left = readdirSync(new URL('src/plugins', root)).filter(
    (name) => !architecture.includes(`\`${name}\``),
  );
  t.deepEqual(left, []);
  for (const { name, about } of registrations.plugins) {
    t.truthy(about, `${name} says what it is for`);
    t.notThrows(() => text(`docs/${about?.docs}`), `the page of ${name}`);
  }
});

test('every actor type stands in the table of names of docs/architecture.md, and no other does', (t) => {
  const [, table = ''] = /^(\| feature \|[\s\S]*?)\n\n/m.exec(text('docs/architecture.md')) ?? [];
  const listed = [...table.matchAll(/`([a-z-]+\.[a-z_]+)`/g)].map(([, name = '']) => name);
  const types = [...new Set(registrations.actors.map(({ type }) => type))];
  t.deepEqual(
    types.filter((type) => !listed.includes(type)),
    [],
    'the table lacks them',
  );
  t.deepEqual(
    listed.filter((name) => !types.includes(name)),
    [],
    'no actor has such a type',
  );
});

test('every variable that stands for an option says what it is for', (t) => {
  const silent = definitions.flatMap(({ env = {}, variables = {} }) =>
    Object.keys(env).filter((name) => variables[name] === undefined),
  );
  t.deepEqual(silent, []);
});

test('every link of the documents to a file of the project leads somewhere', (t) => {
  for (const page of pages()) {
    const base = new URL(page, root);
    const links = [...text(page).matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => link);
    for (const link of links) t.notThrows(() => readFileSync(new URL(link, base)), `${page}: ${link}`);
  }
});

test('README keeps to 130 lines, docs/architecture.md to one page, and a version in the changelog to 60 lines', (t) => {
  t.true(text('README.md').split('\n').length <= 131);
  t.true(text('docs/architecture.md').split('\n').length <= 101);
  const [, ...versions] = text('CHANGELOG.md').trimEnd().split(/^## /m);
  t.true(versions.length > 0);
  for (const version of versions) t.true(version.split('\n').length <= 60, version.slice(0, 20));
});

test('every variable of ours that the sources name is in README or a page of docs', (t) => {
  const known = pages().map(text).join('\n');
  // HOLDFAST_RELAUNCHED of bin/ is the launcher's word to itself.
  const named = [...filesOf('src', '.ts'), 'plugins.config.ts']
    .flatMap((file) => text(file).match(/\bHOLDFAST_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [])
    .filter((name) => !known.includes(name));
  t.deepEqual([...new Set(named)], []);
});

test('every file of the sources that a page or an error names exists', (t) => {
  const texts = pages().map((page) => [page, text(page)] as const);
  const gone = texts.flatMap(([page, body]) =>
    [...body.matchAll(/`((?:src|test|scripts|bench|examples|deploy|docs)\/[\w./-]*\w)\/?`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(new URL(path, root)))
      .map((path) => `${page}: ${path}`),
  );
  t.deepEqual(gone, []);
});
