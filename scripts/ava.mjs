// AVA's command line, with its own final counts handed to file descriptor 3 as one JSON line, and with the files that did not pass.
// The TAP reporter would be the documented way to get them, but in AVA 8.1 it throws as soon as a test times out or
// calls process.exit (avajs/ava issue 3461), and takes the results of all other files with it.
import { writeSync } from 'node:fs';
import { relative } from 'node:path';
import RunStatus from '../node_modules/ava/lib/run-status.js';

const FAILURES = new Set([
  'hook-failed',
  'internal-error',
  'process-exit',
  'shared-worker-error',
  'test-failed',
  'uncaught-exception',
  'unhandled-rejection',
  'worker-failed',
]);
const NO_TESTS = { passedTests: 0, passedKnownFailingTests: 0, skippedTests: 0 };

/** Files with a failure, or without an end; undefined stands for a failure that belongs to no file. */
const unsettled = new Set();
const emitStateChange = RunStatus.prototype.emitStateChange;
RunStatus.prototype.emitStateChange = function (event) {
  if (FAILURES.has(event.type)) unsettled.add(event.testFile);
  // AVA ends all files that are running, and goes on with the next; after an interrupt it does not go on.
  if (event.type === 'timeout') for (const file of this.pendingTests.keys()) unsettled.add(file);
  if (event.type === 'interrupt') unsettled.add(undefined);
  return emitStateChange.call(this, event);
};

// The one method that AVA calls exactly once, after the last file.
const suggestExitCode = RunStatus.prototype.suggestExitCode;
RunStatus.prototype.suggestExitCode = function (...args) {
  const { byFile, ...stats } = this.stats;
  const rows = [...unsettled].map((file) => {
    const { passedTests, passedKnownFailingTests, skippedTests } = byFile.get(file) ?? NO_TESTS;
    const name = file === undefined ? null : relative(process.cwd(), file);
    return { file: name, passedTests, passedKnownFailingTests, skippedTests };
  });
  writeSync(3, JSON.stringify({ ...stats, unsettled: rows }));
  setTimeout(() => {
    console.error('A test left a process behind that still holds the output; not waiting for it.');
    process.exit();
  }, 1000).unref();
  return suggestExitCode.apply(this, args);
};

await import('../node_modules/ava/entrypoints/cli.js');
