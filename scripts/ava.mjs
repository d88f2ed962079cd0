// AVA's command line, with its own final counts handed to file descriptor 3 as one JSON line.
// The TAP reporter would be the documented way to get them, but in AVA 8.1 it throws as soon as a test times out or
// calls process.exit (avajs/ava issue 3461), and takes the results of all other files with it.
import { writeSync } from 'node:fs';
import RunStatus from '../node_modules/ava/lib/run-status.js';

// The one method that AVA calls exactly once, after the last file.
const suggestExitCode = RunStatus.prototype.suggestExitCode;
RunStatus.prototype.suggestExitCode = function (...args) {
  const { byFile: _, ...stats } = this.stats;
  writeSync(3, JSON.stringify(stats));
  setTimeout(() => {
    console.error('A test left a process behind that still holds the output; not waiting for it.');
    process.exit();
  }, 1000).unref();
  return suggestExitCode.apply(this, args);
};

await import('../node_modules/ava/entrypoints/cli.js');
