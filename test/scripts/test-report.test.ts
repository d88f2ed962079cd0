import test from 'ava';

// It runs on any Node, so it is no TypeScript.
const { TestReport } = await import(new URL('../../scripts/test-report.mjs', import.meta.url).href);

/** @returns what is shown of an output, and what follows at its end */
function shown(lines: readonly string[]): { shown: string[]; end: string[] } {
  const report = new TestReport();
  return { shown: lines.flatMap((line): string[] => report.line(line) ?? []), end: report.end() };
}

test('what failed is named at the end, before the slowest tests, each once', (t) => {
  const { end } = shown([
    '  ✔ cli › status › it is there (12ms)',
    '  ✘ [fail]: cli › status › it is told Rejected promise returned by test',
    '  ✔ kill.slow › it goes on (1m 5.4s)',
    '  ✘ test/cli/status.test.ts exited due to SIGKILL',
    '  ✘ [fail]: cli › status › it is told Rejected promise returned by test',
    '  ◌ cluster › stream › it comes',
    '  ─',
  ]);
  t.deepEqual(end, [
    'What failed:',
    '  ✘ cli › status › it is told Rejected promise returned by test',
    '  ✘ test/cli/status.test.ts exited due to SIGKILL',
    '  ✘ cluster › stream › it comes',
    'The slowest tests:',
    '   65 s  kill.slow › it goes on',
    '    0 s  cli › status › it is there',
  ]);
});

test('a quick run without a failure ends without either', (t) => {
  t.deepEqual(shown(['  ✔ a › b', '  ✔ a › c (4.9s)']).end, []);
});

test('passed tests are counted, a note is shown once, and everything else as it is', (t) => {
  const passed = Array.from({ length: 100 }, (_, i) => `  ✔ a › test ${i}`);
  const { shown: lines } = shown([
    ...passed,
    '    ℹ this kernel has no VLANs',
    '  ✔ a › b',
    '    ℹ this kernel has no VLANs',
    '    ℹ 7 ms',
    '  ✘ [fail]: a › c',
    '  ─',
    '',
  ]);
  t.deepEqual(lines, [
    '  ✔ 50 passed so far',
    '  ✔ 100 passed so far',
    '    ℹ this kernel has no VLANs',
    '    ℹ 7 ms',
    '  ✘ [fail]: a › c',
    '  ─',
    '',
  ]);
});
