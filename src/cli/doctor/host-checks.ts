import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';

/** The first release with type stripping and SQLite, both without flags or warnings. */
const NODE = { major: 24, minor: 12 };
/** A full log freezes every decision; below these it is time to act. */
const DISK_FAIL_BYTES = 32 * 1024 * 1024;
const DISK_WARN_BYTES = 512 * 1024 * 1024;
const MIB = 1024 * 1024;

/** What Holdfast itself needs of the machine, whichever plugins run. */
export const hostChecks: readonly CheckDefinition[] = [
  { name: 'host.node', run: () => nodeCheck(process.versions.node) },
  { name: 'host.data', run: ({ dataDir }) => dataCheck(dataDir) },
  { name: 'host.disk', run: ({ dataDir }) => diskCheck(dataDir) },
];

export function nodeCheck(version: string): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const lookedAt = 'the version of Node';
  const isEnough = major > NODE.major || (major === NODE.major && minor >= NODE.minor);
  if (isEnough) return { state: 'ok', lookedAt, found: `Node ${version}` };
  const found = `Node ${version}, and ${NODE.major}.${NODE.minor} is needed`;
  return { state: 'fail', lookedAt, found, remedy: 'Install Node 24, or run `npm ci` in the checkout.' };
}

/** The log and the generated keys lie there: nobody else may read them. */
function dataCheck(dataDir: string): CheckResult {
  const lookedAt = dataDir;
  if (!existsSync(dataDir)) {
    return { state: 'ok', lookedAt, found: 'there is none yet; the first start makes it' };
  }
  const { mode, uid } = statSync(dataDir);
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const found = `it belongs to user ${uid} with mode ${octal}, and this user (${process.getuid?.()}) cannot write it`;
    return { state: 'fail', lookedAt, found, remedy: `Run as its owner, or chown it.` };
  }
  if ((mode & 0o077) !== 0) {
    const remedy = `chmod 700 ${dataDir}`;
    return { state: 'warn', lookedAt, found: `others may look into it (mode ${octal})`, remedy };
  }
  return { state: 'ok', lookedAt, found: `mode ${octal}, writable` };
}

function diskCheck(dataDir: string): CheckResult {
  let folder = dataDir;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  return judgeDisk(bavail * bsize, folder);
}

/** @param free bytes that this user may still write */
export function judgeDisk(free: number, folder: string): CheckResult {
  const lookedAt = `the disk under ${folder}`;
  const found = `${Math.floor(free / MIB)} MiB are free`;
  if (free >= DISK_WARN_BYTES) return { state: 'ok', lookedAt, found };
  const remedy = 'Make room: a log that cannot be written freezes every decision.';
  return { state: free < DISK_FAIL_BYTES ? 'fail' : 'warn', lookedAt, found, remedy };
}
