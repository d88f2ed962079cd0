// When a whole run of the tests has a few files that did not pass, they run once more, one after the other, on a machine that has
// nothing else to do: many a test has real servers, real time and three neighbours. What passes then is counted as passed and
// named as unsteady; what fails again has failed. See docs/testing.md.

/** So many at most: where more files fail, it is not chance. */
const MOST_FILES = 4;

/**
 * What looks for faults that come by chance must not be asked until it finds none: a property test says this of its counterexample,
 * and a test of faults by chance names its seed in its title.
 */
const COUNTEREXAMPLE = /Property failed after|^\s*[✘◌] .*\(seed \d+\)/;

/** @param line of AVA's output @returns whether it tells a failure that a second run must not hide */
export const isCounterexample = (line) => COUNTEREXAMPLE.test(line);

/**
 * @param stats the counts that `scripts/ava.mjs` hands over; `unsettled` has a row for each file with a failure, whose `file` is
 *   null where something failed that belongs to no file
 * @param counterexample whether a test of what comes by chance found a fault
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
