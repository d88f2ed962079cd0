/** What `npm test` does when a few files of a whole run did not pass. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { root } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const { filesForSecondRun, isCounterexample, together, unsteady } = await import(
  new URL('../../scripts/second-run.mjs', import.meta.url).href
);

const MANIFEST = { type: 'module', ava: { files: ['*.test.js'], workerThreads: false } };
const FILES = {
  'package.json': JSON.stringify(MANIFEST),
  'steady.test.js': `import test from 'ava'; test('a', (t) => t.pass()); test.skip('b', (t) => t.pass());`,
  // Passes only where the folder holds a file that its first run makes.
  'unsteady.test.js': `import { existsSync, writeFileSync } from 'node:fs'; import test from 'ava';
    test('c', (t) => t.pass());
    test('d', (t) => { const again = existsSync('ran'); writeFileSync('ran', ''); t.true(again); });`,
  'broken.test.js': `import test from 'ava'; test('e', (t) => t.pass()); test('f', (t) => t.fail());`,
  'ends.test.js': `import test from 'ava'; test('g', () => process.exit(3));`,
};

/** A project of its own with real tests. @returns runs these files of it, all where none is named, and gives what is counted */
function project(t: ExecutionContext): (...files: string[]) => Promise<any> {
  const folder = tempDir(t);
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return async (...files) => {
    const child = spawn(process.execPath, [join(root, 'scripts', 'ava.mjs'), ...files], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', AVA_PATH: '' },
    });
    const [report] = await Promise.all([text(child.stdio[3] as any), once(child, 'exit')]);
    return JSON.parse(report);
  };
}

test('files that did not pass run once more, each counts with its last run, and those which passed only then are named', async (t) => {
  t.timeout(120_000);
  const run = project(t);
  const first = await run();
  const files = filesForSecondRun(first, false);
  t.deepEqual(files.toSorted(), ['broken.test.js', 'ends.test.js', 'unsteady.test.js']);

  const second = await run('--concurrency=1', ...files);
  t.like(together(first, second), {
    passedTests: 1 + 2 + 1,
    skippedTests: 1,
    failedTests: 1,
    remainingTests: 1,
  });
  t.deepEqual(unsteady(files, second), [
    'Passed only when run again, so they are not steady:',
    '  ~ unsteady.test.js',
  ]);

  const third = await run('steady.test.js', 'unsteady.test.js');
  t.deepEqual([third.unsettled, third.passedTests], [[], 3]);
});

const row = (file: string | null) => ({ file, passedTests: 1, passedKnownFailingTests: 0, skippedTests: 0 });
const failing = (...files: (string | null)[]) => ({ passedTests: 9, unsettled: files.map(row) });

test('there is no second run where it would be no answer', (t) => {
  t.deepEqual(filesForSecondRun(failing('a', 'b', 'c', 'd'), false), ['a', 'b', 'c', 'd']);
  t.deepEqual(filesForSecondRun(failing('a', 'b', 'c', 'd', 'e'), false), [], 'too many for chance');
  t.deepEqual(filesForSecondRun(failing('a', null), false), [], 'a failure that belongs to no file');
  t.deepEqual(filesForSecondRun(failing('a'), true), [], 'a fault that comes by chance was found');
  t.deepEqual(filesForSecondRun(failing(), false), [], 'nothing failed');
  t.deepEqual(filesForSecondRun(undefined, false), [], 'the run broke before it could count');
  t.true(isCounterexample('  Error: Property failed after 3 tests'));
  t.true(isCounterexample('  ✘ [fail]: cluster › host-faults.slow › nothing is done twice (seed 41457)'));
  t.true(isCounterexample('  ◌ cluster › host-faults.slow › nothing is done twice (seed 41457)'));
  t.false(isCounterexample('  ✔ cluster › host-faults.slow › nothing is done twice (seed 41457) (1m 2s)'));
  t.false(isCounterexample('  ✘ [fail]: a property'));
});

test('what was not steady is not said of a run that broke', (t) => {
  t.deepEqual(unsteady(['a'], undefined), []);
  t.deepEqual(unsteady(['a'], failing(null)), []);
  t.deepEqual(unsteady(['a'], failing('a')), []);
});
