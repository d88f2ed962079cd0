export default {
  extensions: ['ts'], // type stripping is Node's own
  files: [
    'test/**/*.test.ts',
    // `npm run verify` stays under a minute; `npm test` runs everything
    ...(process.env.HOLDFAST_FAST_TESTS ? ['!test/**/*.slow.test.ts'] : []),
  ],
  concurrency: 3, // for two cores: many a test waits for a disk, a timer or a program
  nodeArguments: [
    '--import=./scripts/compile-cache.mjs',
    // A worker lives for seconds: collecting what loading leaves behind took a tenth of its time.
    '--min-semi-space-size=16',
    '--max-semi-space-size=32',
  ],
  // Without any finished test for this long, AVA ends the run: a machine that others use too is slow, not stuck.
  // A test that needs longer says so: t.timeout(ms).
  timeout: '3m',
  // Processes, not threads: tests send signals, change directories and environments, and load native code.
  workerThreads: false,
};
