// When a whole run of the tests has a few files that did not pass, they run once more, one after the other, on a machine that has
// nothing else to do: many a test has real servers, real time and three neighbours. What passes then is counted as passed and
// named as unsteady; what fails again has failed. See docs/testing.md.

/** So many at most: where more files fail, it is not chance. */
const MOST_FILES = 4;

/** What fast-check says of a counterexample: it has found one, and the next run, with other values, would hide it. */
const COUNTEREXAMPLE = 'Property failed after';

/** @param line of AVA's output @returns whether it tells a failure that a second run must not hide */
export const isCounterexample = (line) => line.includes(COUNTEREXAMPLE);

/**
 * @param stats the counts that `scripts/ava.mjs` hands over; `unsettled` has a row for each file with a failure, whose `file` is
 *   null where something failed that belongs to no file
 * @param counterexample whether a property test found one
 * @returns the files to run once more; none where that would be no answer
 */
export function filesForSecondRun(stats, counterexample) {
  const files = stats?.unsettled ?? [];
  if (counterexample || files.length > MOST_FILES || files.some(({ file }) => file === null)) return [];
  return files.map(({ file }) => file);
}

/**
 * @param first the counts of the whole run
 * @param second those of the run of its unsettled files
 * @returns the counts of both: each file counts with its last run
 */
export function together(first, second) {
  const earlier = (name) => first.unsettled.reduce((sum, file) => sum + file[name], 0);
  return {
    ...second,
    passedTests: first.passedTests - earlier('passedTests') + (second?.passedTests ?? 0),
    passedKnownFailingTests:
      first.passedKnownFailingTests -
      earlier('passedKnownFailingTests') +
      (second?.passedKnownFailingTests ?? 0),
    skippedTests: first.skippedTests - earlier('skippedTests') + (second?.skippedTests ?? 0),
  };
}

/**
 * @param ran the files that ran twice
 * @param second the counts of their second run
 * @returns lines that name those which passed only then
 */
export function unsteady(ran, second) {
  const again = new Set(second?.unsettled.map(({ file }) => file));
  const passed = second === undefined || again.has(null) ? [] : ran.filter((file) => !again.has(file));
  if (passed.length === 0) return [];
  return ['Passed only when run again, so they are not steady:', ...passed.map((file) => `  ~ ${file}`)];
}
