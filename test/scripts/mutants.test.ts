import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { tempDir } from '../support/temp.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** A product of one file, with a test that starts it in a process and an environment of its own. */
const LAMP = {
  'package.json': '{ "name": "lamp", "type": "module" }',
  'ava.config.js': "export default { extensions: ['ts'], files: ['test/**/*.test.ts'] };",
  'tsconfig.json':
    '{ "compilerOptions": { "noEmit": true, "module": "nodenext", "allowImportingTsExtensions": true }, "include": ["src"] }',
  'src/lamp.ts': `export const brightest = 100;
    // brightest = 100
    export function dim(to: number): number {
      if (to < 0) return 0;
      return to > brightest ? brightest : to;
    }
    console.log(dim(Number(process.argv.at(-1))));
  `,
  'src/unused.ts': 'export const unused = true;',
  'test/lamp.test.ts': `import { execFile } from 'node:child_process';
    import { promisify } from 'node:util';
    import test from 'ava';
    test('[L1] a lamp is not brighter than it can be', async (t) => {
      const { stdout } = await promisify(execFile)(process.execPath, ['src/lamp.ts', '200'], { env: {} });
      t.is(stdout.trim(), '100');
    });
    test('[L2] a lamp is as bright as one says', async (t) => {
      const { stdout } = await promisify(execFile)(process.execPath, ['src/lamp.ts', '7'], { env: {} });
      t.is(stdout.trim(), '7');
    });
  `,
};

/** Runs the script over such a product. @param mutations the list of its only area, as source text */
async function mutants(
  t: ExecutionContext,
  mutations: string,
  { args = ['--written'], equivalent = '', page = '' } = {},
) {
  const root = tempDir(t);
  const area = `export default {
    sources: ['src/'],
    mutations: [${mutations}].map((mutation) => ({ tests: ['lamp'], ...mutation })),
    automatic: { sources: ['src/lamp'], tests: ['lamp'], equivalent: [${equivalent}] },
  };`;
  const files = { ...LAMP, 'scripts/mutants/areas/lamp.ts': area, 'docs/testing.md': page };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'));
  const script = join(project, 'scripts', 'mutants.ts');
  return new Promise<{ ok: boolean; text: string; page: string }>((resolve) => {
    execFile(process.execPath, [script, '--root', root, '--jobs=1', ...args], (error, stdout) => {
      const written = readFileSync(join(root, 'docs/testing.md'), 'utf8');
      resolve({ ok: error === null, text: stdout, page: written });
    });
  });
}

test('a change that a test notices counts as killed, in a program that the test starts too', async (t) => {
  const { ok, text } = await mutants(
    t,
    "{ breaks: 'no bound', find: '$1 > brightest ? brightest : $1', put: '$1' }",
  );
  t.true(ok, text);
  t.regex(text, /killed +\d+ s +lamp: no bound {2}test\/lamp\.test\.ts: \[L1\] a lamp is not brighter/);
  t.regex(text, /lamp +1\/1 .* 100 %/);
});

test('a change that no test notices survives by name, and the run fails', async (t) => {
  const { ok, text } = await mutants(t, "{ breaks: 'negative', find: 'if ($1 < 0)', put: 'if (false)' }");
  t.false(ok);
  t.regex(text, /survived:\n {2}lamp: negative/);
});

test('only the tests that name the promise count', async (t) => {
  const { ok, text } = await mutants(
    t,
    "{ breaks: 'no bound', id: 'L2', find: '> brightest', put: '> 1e9' }",
  );
  t.false(ok);
  t.regex(text, /survived:\n {2}lamp: no bound/);
});

for (const [what, mutation, says] of [
  ['is gone', "{ breaks: 'x', find: 'darkest', put: '' }", /"darkest" stands nowhere/],
  [
    'stands twice',
    "{ breaks: 'x', find: 'brightest = 100', put: '' }",
    /stands 2 times: src\/lamp\.ts:1, src\/lamp\.ts:2/,
  ],
  ['becomes no TypeScript', "{ breaks: 'x', find: 'if ($1 < 0)', put: 'if (' }", /no TypeScript any more/],
  [
    'no test loads',
    "{ breaks: 'x', find: 'unused = true', put: 'unused = false' }",
    /no test loads src\/unused\.ts/,
  ],
  [
    'no test is named for',
    "{ breaks: 'x', find: '> brightest', put: '', id: 'L9' }",
    /there is no test of L9/,
  ],
] as const) {
  test(`a change of a text that ${what} is stale, and the run fails`, async (t) => {
    const { ok, text } = await mutants(t, mutation);
    t.false(ok);
    t.regex(text, /lamp +0\/0 +0\/0 +0 +0 +0 +1 +–/);
    t.regex(text, says);
  });
}

test('a trial that does not end, twice, is noticed, as AVA would fail it', async (t) => {
  const mutation = "breaks: 'endless', find: 'if ($1 < 0) return 0;', put: 'for (;;);'";
  const { ok, text } = await mutants(t, `{ ${mutation} }`, { args: ['--written', '--patience=1'] });
  t.true(ok, text);
  t.regex(text, /killed +\d+ s +lamp: endless {2}test\/lamp\.test\.ts did not end in \d+ s, twice/);
});

test('a trial that does not end by chance has noticed nothing', async (t) => {
  const put =
    "if (await import('node:fs').then((fs) => !fs.existsSync('hung') && !fs.writeFileSync('hung', ''))) for (;;);";
  const { ok, text } = await mutants(
    t,
    `{ breaks: 'once', find: 'console.log(', put: \`${put} console.log(\` }`,
    {
      args: ['--written', '--patience=1'],
    },
  );
  t.false(ok);
  t.regex(text, /timed out:\n {2}lamp: once/);
});

test('changes made by rule leave types and comments alone, and are the same in every run', async (t) => {
  const args = ['--list'];
  const { ok, text } = await mutants(t, '', { args });
  t.true(ok, text);
  t.is(text.trim().split('\n').length, 2);
  t.notRegex(text, /lamp\.ts:2 /);
  t.is((await mutants(t, '', { args })).text, text);
});

test('a change that nobody can see has no share, with its reason in the page; what was not run keeps its rows', async (t) => {
  const page = `before\n<!-- written by npm run mutants -- --record -->

| area, changes | tried | noticed | share |
|---|---|---|---|

| area, changes | what no test notices | why |
|---|---|---|
| kettle, by rule | src/kettle.ts: 100 → 201 | a test of it is missing |
| lamp, by rule | src/lamp.ts: 7 → 15 | a test of it is missing |
| lamp, of the list | no bound | a test of it is missing |

<!-- end of what npm run mutants writes -->\nafter\n`;
  const equivalent =
    "{ find: 'if ($1 < 0)', put: 'if (false)', because: 'a lamp is never asked for less than nothing' }";
  const {
    ok,
    text,
    page: written,
  } = await mutants(t, '', {
    args: ['--record', '--by-rule'],
    equivalent,
    page,
  });
  t.true(ok, text);
  t.regex(text, /lamp +0\/0 +1\/1 +0 +0 +1 +0 +100 %/);
  const rows = written.split('\n').filter((line) => /^\| (?:kettle|lamp)/.test(line));
  t.deepEqual(rows, [
    '| lamp, by rule | 1 | 1 | 100 % |',
    '| kettle, by rule | src/kettle.ts: 100 → 201 | a test of it is missing |',
    '| lamp, by rule | src/lamp.ts: to < 0 → false | equivalent: a lamp is never asked for less than nothing |',
    '| lamp, of the list | no bound | a test of it is missing |',
  ]);
  t.true(written.startsWith('before\n<!--') && written.endsWith('-->\nafter\n'), written);
});

test('a reason for a change that is not in the code any more is stale, and the run fails', async (t) => {
  const equivalent = "{ find: 'darkest', put: '', because: 'nobody looks' }";
  const { ok, text } = await mutants(t, '', { args: ['--list'], equivalent });
  t.false(ok);
  t.regex(text, /"darkest" stands nowhere/);
});
