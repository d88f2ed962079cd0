// `npm run mutants`: breaks the code on purpose, one change at a time, and looks whether the tests notice. See
// docs/testing.md.
//   npm run mutants -- alerts log     only these areas
//   npm run mutants -- --list         what would be tried, without trying
//   npm run mutants -- --written      only the changes of the lists, none made by rule
//   npm run mutants -- --by-rule      only those made by rule
//   npm run mutants -- --only=bearer  only changes whose description holds this text
//   npm run mutants -- --jobs=4       so many at once; as many as processors unless said
//   npm run mutants -- --record       writes the result of these areas into docs/testing.md
//   npm run mutants -- --patience=60  seconds that a test file may take beyond four times its usual
// Ends with 1 when fewer than 85 % of an area were noticed, when a mutation is stale, or when its tests fail without it.
import { availableParallelism } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { automaticMutations } from './mutants/automatic.ts';
import { type Area, type MutatedFile, mutate, StaleMutation } from './mutants/mutation.ts';
import { record } from './mutants/record.ts';
import { printSummary, type Result } from './mutants/summary.ts';
import { type Tests, type Trial, tryTests } from './mutants/trial.ts';
import { filesBelow, sourceFiles } from './source.ts';
import { filesById } from './titles.ts';

/** Changes made by rule, so that a whole run stays below an hour on two processors. */
const DRAW = { perFile: 2, most: 12, seed: '1' };
const ENOUGH_PERCENT = 85;
/** How much longer than without a change a test file may take before it counts as hanging. */
const PATIENCE = 4;
/** A test file without a change may take so long. */
const LONGEST_MS = 300_000;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: 'string' }, // another checkout, for the test of this script
    list: { type: 'boolean', default: false },
    written: { type: 'boolean', default: false },
    'by-rule': { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    record: { type: 'boolean', default: false },
    patience: { type: 'string', default: '30' },
    jobs: { type: 'string', default: String(availableParallelism()) },
  },
});
const root = resolve(flags.root ?? fileURLToPath(new URL('..', import.meta.url)));
const testFiles = sourceFiles(root, 'test').filter((file) => file.endsWith('.test.ts'));
const srcFiles = [...sourceFiles(root, 'src'), ...filesBelow(root, 'deploy')];
const filesOfId = filesById(root);

if (flags.record && flags.only !== '') throw new Error('--record is of whole areas: leave out --only');

/** One change with the tests that must notice it; `stale` says why it can't be tried, `equivalent` why it needn't. */
interface Candidate {
  readonly area: string;
  readonly kind: 'written' | 'automatic';
  readonly breaks: string;
  readonly mutated?: MutatedFile;
  readonly tests: readonly Tests[];
  readonly stale?: string;
  readonly equivalent?: string;
}

const below = (files: readonly string[], paths: readonly string[]): string[] => {
  for (const path of paths) {
    if (!files.some((file) => file.startsWith(path))) throw new StaleMutation(`no file is below ${path}`);
  }
  return files.filter((file) => paths.some((path) => file.startsWith(path)));
};

function testsOf({ id, tests }: { readonly id?: string; readonly tests?: readonly string[] }): Tests[] {
  const ofId = id === undefined ? testFiles : (filesOfId.get(id) ?? []);
  for (const part of tests ?? []) {
    if (!testFiles.some((file) => file.includes(part)))
      throw new StaleMutation(`no test file matches ${part}`);
  }
  const files = ofId.filter((file) => tests?.some((part) => file.includes(part)) ?? id !== undefined);
  if (files.length === 0)
    throw new StaleMutation(id === undefined ? 'names no tests' : `there is no test of ${id} in its files`);
  return files.map((file) => ({ file, id }));
}

function candidatesOf(area: string, { sources, mutations, automatic }: Area): Candidate[] {
  const written = (flags['by-rule'] ? [] : mutations).map((mutation): Candidate => {
    const { breaks } = mutation;
    const about = { area, kind: 'written', breaks } as const;
    try {
      const mutated = mutate(root, below(srcFiles, sources), mutation);
      return { ...about, mutated, tests: testsOf(mutation) };
    } catch (error) {
      if (!(error instanceof StaleMutation)) throw error;
      return { ...about, tests: [], stale: error.message };
    }
  });
  if (flags.written) return written;
  const about = { area, kind: 'automatic', tests: [] } as const;
  try {
    const tests = testsOf({ tests: automatic.tests });
    const files = below(srcFiles, automatic.sources);
    const equivalents = (automatic.equivalent ?? []).map(({ because, ...change }) => {
      const { file, text } = mutate(root, files, change);
      return { file, because, text: text.replace(/\s/g, '') };
    });
    const drawn = automaticMutations(root, files, DRAW).map((mutation): Candidate => {
      const { file, text } = mutation.mutated;
      const known = equivalents.find((one) => one.file === file && one.text === text.replace(/\s/g, ''));
      return { ...about, ...mutation, tests, ...(known && { equivalent: known.because }) };
    });
    return [...written, ...drawn];
  } catch (error) {
    if (!(error instanceof StaleMutation)) throw error;
    return [...written, { ...about, breaks: 'changes made by rule', stale: error.message }];
  }
}

async function areas(): Promise<Map<string, Area>> {
  const files = sourceFiles(root, 'scripts/mutants/areas');
  const found = new Map<string, Area>();
  for (const file of files) {
    const name = basename(file, '.ts');
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    const { default: area }: { default: Area } = await import(pathToFileURL(join(root, file)).href);
    found.set(name, area);
  }
  const unknown = positionals.filter((name) => !found.has(name));
  if (unknown.length > 0) throw new Error(`no such area: ${unknown.join(', ')}`);
  return found;
}

/** Runs the jobs, so many at once; results in the order of the jobs. */
async function inParallel<J, R>(jobs: readonly J[], run: (job: J) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(jobs.length);
  const waiting = jobs.entries();
  const worker = async (): Promise<void> => {
    for (const [index, job] of waiting) results[index] = await run(job);
  };
  await Promise.all(Array.from({ length: Number(flags.jobs) }, worker));
  return results;
}

const unchangedTrials = new Map<string, Promise<Trial>>();

/** A test file without a change, once: whether it passes, how long it takes, and what it loads. */
function unchanged(file: string): Promise<Trial> {
  const trial = unchangedTrials.get(file) ?? tryTests(root, { file }, { limitMs: LONGEST_MS });
  if (!unchangedTrials.has(file)) {
    unchangedTrials.set(file, trial);
    void trial.then(({ outcome, tookMs, output }) => {
      const seconds = (tookMs / 1_000).toFixed(0).padStart(3);
      console.log(`${outcome.kind.padEnd(9)} ${seconds} s  without any change: ${file}`);
      if (outcome.kind !== 'passed') console.log(output);
    });
  }
  return trial;
}

/** The tests in the order in which they are run: those that are slow by their name last, and looked at only then. */
async function* inOrder(
  tests: readonly Tests[],
  mutatedFile: string,
): AsyncGenerator<{ each: Tests; without: Trial }> {
  const isSlow = ({ file }: Tests): boolean => file.includes('.slow.');
  const quick: { each: Tests; without: Trial }[] = [];
  for (const each of tests.filter((one) => !isSlow(one))) {
    quick.push({ each, without: await unchanged(each.file) });
  }
  // A test that has the name of the file is the likeliest to notice.
  const name = basename(mutatedFile).split('.')[0] ?? '';
  const cost = ({ each, without }: { each: Tests; without: Trial }): number =>
    basename(each.file).startsWith(`${name}.`) ? 0 : without.tookMs;
  yield* quick.sort((a, b) => cost(a) - cost(b));
  for (const each of tests.filter(isSlow)) yield { each, without: await unchanged(each.file) };
}

async function verdict(candidate: Candidate): Promise<Result> {
  const { area, kind, breaks, mutated } = candidate;
  const began = performance.now();
  const result = (state: Result['state'], why: string): Result => ({
    ...{ area, kind, breaks, state, why },
    tookMs: performance.now() - began,
  });
  if (candidate.stale !== undefined || mutated === undefined) return result('stale', candidate.stale ?? '');
  if (candidate.equivalent !== undefined) return result('equivalent', candidate.equivalent);
  let loaded = false;
  let hung: { readonly each: Tests; readonly limitMs: number } | undefined;
  let broken = '';
  for await (const { each, without } of inOrder(candidate.tests, mutated.file)) {
    if (without.outcome.kind !== 'passed') broken = each.file;
    // What a test reads and doesn't load, such as a file of deploy/, is seen only with the change in its place.
    const mayLoad = !mutated.file.startsWith('src/') || without.loads.has(mutated.file);
    if (without.outcome.kind !== 'passed' || !mayLoad) continue;
    const limitMs = Number(flags.patience) * 1000 + PATIENCE * without.tookMs;
    const { outcome } = await tryTests(root, each, { mutated, limitMs });
    if (outcome.kind === 'failed') {
      const { by: title, why } = outcome;
      // Tests of machines touch nothing but functions. Another one that fails by chance, on a machine that others use
      // too, has noticed nothing.
      if (each.file.startsWith('test/machines/')) return result('killed', `${each.file}: ${why}`);
      const again = await tryTests(root, { ...each, title }, { mutated, limitMs });
      if (again.outcome.kind !== 'passed') return result('killed', `${each.file}: ${why}`);
    }
    if (outcome.kind === 'timed out') hung ??= { each, limitMs };
    if (outcome.kind !== 'not loaded') loaded = true;
  }
  if (broken !== '') return result('stale', `${broken} does not pass without the change`);
  if (!loaded) return result('stale', `no test loads ${mutated.file}`);
  if (!hung) return result('survived', '');
  const { each, limitMs } = hung;
  const again = await tryTests(root, each, { mutated, limitMs });
  const why = `${each.file} did not end in ${Math.round(limitMs / 1000)} s`;
  return again.outcome.kind === 'passed' ? result('timed out', why) : result('killed', `${why}, twice`);
}

async function main(): Promise<number> {
  const candidates = [...(await areas())]
    .flatMap(([name, area]) => candidatesOf(name, area))
    .filter(({ breaks }) => breaks.toLowerCase().includes(flags.only.toLowerCase()));
  if (flags.list) {
    for (const { area, breaks, mutated, stale } of candidates) {
      console.log(`${area.padEnd(12)} ${breaks}  (${stale ?? `${mutated?.file}:${mutated?.line}`})`);
    }
    return candidates.some(({ stale }) => stale !== undefined) ? 1 : 0;
  }
  console.log(`${candidates.length} changes:`);
  const results = await inParallel(candidates, async (candidate) => {
    const result = await verdict(candidate);
    const seconds = (result.tookMs / 1000).toFixed(0).padStart(3);
    console.log(`${result.state.padEnd(9)} ${seconds} s  ${result.area}: ${result.breaks}  ${result.why}`);
    return result;
  });
  const trials = await Promise.all([...unchangedTrials.values()]);
  const allPass = trials.every(({ outcome }) => outcome.kind === 'passed');
  if (flags.record) record(join(root, 'docs', 'testing.md'), results);
  return printSummary(results, ENOUGH_PERCENT) && allPass ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
process.exitCode = await main();
