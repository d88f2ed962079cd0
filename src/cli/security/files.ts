import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { controlSocket } from '../../core/host/http/addresses.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { Registrations } from '../../core/host/plugin/registrations.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { lockedBy } from '../../core/kernel/log/lock.ts';
import { octal, userOf } from '../../core/kernel/ownership.ts';

const RIGHTS_OF_OTHERS = 0o077;
/** A folder of secrets has a handful of files. */
const MOST_FILES = 10_000;

/** What `holdfast doctor security` looks at on the disk: token files, the data folder with its secrets, the control socket. */
export function fileChecks({ surfaces }: Pick<Registrations, 'surfaces'>): CheckDefinition[] {
  const tokens = surfaces.flatMap(({ options: { name, tokenFile } }) =>
    tokenFile === undefined ? [] : [{ name: `security.${name}_token`, run: () => tokenCheck(tokenFile) }],
  );
  return [
    { name: 'security.data', run: ({ dataDir }) => dataCheck(dataDir) },
    { name: 'security.control', run: controlCheck },
    ...tokens,
  ];
}

function tokenCheck(file: string): CheckResult {
  const found = lstatSync(file, { throwIfNoEntry: false });
  const lookedAt = file;
  if (!found) {
    const remedy = `Write it: (umask 077; openssl rand -hex 32 > ${file})`;
    return { state: 'fail', lookedAt, found: 'there is no such file, so nobody has the token', remedy };
  }
  const rights = `mode ${octal(found.mode)}, ${userOf(found.uid)}`;
  if ((found.mode & RIGHTS_OF_OTHERS) !== 0 && !found.isSymbolicLink()) {
    const remedy = `chmod 600 ${file}, and write another token into it: this one may be known.`;
    return { state: 'fail', lookedAt, found: `others have rights on it (${rights})`, remedy };
  }
  if (found.uid !== 0 && found.uid !== process.geteuid?.()) {
    const remedy = 'Give it to the user who runs Holdfast, with chown.';
    return { state: 'fail', lookedAt, found: `another user may change it (${rights})`, remedy };
  }
  return unusableToken(file) ?? { state: 'ok', lookedAt, found: rights };
}

/** What its rights do not show: where a link leads, who may write the folders on the way, whether there is a token in it. */
function unusableToken(file: string): CheckResult | undefined {
  try {
    readTokenFile(file);
    return undefined;
  } catch (error) {
    if (!isCoded(error)) throw error;
    const state = error.code === 'HF_CONFIG_SECRET_MISSING' ? 'unknown' : 'fail';
    return { state, lookedAt: file, found: error.what, remedy: error.remedy };
  }
}

function dataCheck(dataDir: string): CheckResult {
  const lookedAt = dataDir;
  if (!existsSync(dataDir)) {
    const remedy = 'Start it with `holdfast start`, or name the folder by --data-dir.';
    return { state: 'unknown', lookedAt, found: 'not looked at: there is none yet', remedy };
  }
  const { mode, uid } = lstatSync(dataDir);
  const secrets = join(dataDir, 'secrets');
  const files = existsSync(secrets) ? [secrets, ...filesIn(secrets)] : [];
  const open = files.filter((file) => (lstatSync(file).mode & RIGHTS_OF_OTHERS) !== 0);
  const foreign = files.filter((file) => ![0, uid].includes(lstatSync(file).uid));
  const rights = `mode ${octal(mode)}, ${userOf(uid)}`;
  if (open.length + foreign.length > 0) {
    const [first = ''] = [...open, ...foreign];
    const remedy = `chmod -R go= ${secrets}, check its owner, and replace what others may have read.`;
    return { state: 'fail', lookedAt, found: `others have rights on ${first}`, remedy };
  }
  if ((mode & RIGHTS_OF_OTHERS) !== 0) {
    const found = `others have rights on the folder of the log and the keys (${rights})`;
    return { state: (mode & 0o022) === 0 ? 'warn' : 'fail', lookedAt, found, remedy: `chmod 700 ${dataDir}` };
  }
  return {
    state: 'ok',
    lookedAt,
    found: `${rights}; ${files.length} files and folders with secrets are closed`,
  };
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return entries.slice(0, MOST_FILES).map((name) => join(folder, name));
}

/** Commands write through it, so whoever may connect to it may do all that an operator may. */
function controlCheck({ dataDir }: CheckContext): CheckResult {
  const lookedAt = controlSocket(dataDir);
  const found = lstatSync(lookedAt, { throwIfNoEntry: false });
  if (!found || !existsSync(dataDir) || lockedBy(dataDir) === undefined) {
    const remedy = 'Start it with `holdfast start`, and look again.';
    return { state: 'unknown', lookedAt, found: 'not looked at: no instance runs here', remedy };
  }
  const rights = `mode ${octal(found.mode)}, ${userOf(found.uid)}`;
  const isOwn = found.isSocket() && found.uid === lstatSync(dataDir).uid;
  if (isOwn && (found.mode & RIGHTS_OF_OTHERS) === 0) return { state: 'ok', lookedAt, found: rights };
  const remedy = `chmod 600 ${lookedAt}, or start the instance again.`;
  return { state: 'fail', lookedAt, found: `others may use the control socket (${rights})`, remedy };
}
