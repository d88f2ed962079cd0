import { accessSync, constants, lstatSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { KernelError } from './errors/kernel-error.ts';

/** `1` says that nobody else uses this machine, as in a container: then folders that others may write are accepted. */
const SOLE_USER = 'HOLDFAST_SOLE_USER';
const WRITE_OF_GROUP = 0o020;
const WRITE_OF_OTHERS = 0o002;
const STICKY = 0o1000;
const MOST_LINKS = 40;

/**
 * Says who, besides root and the user of this process, could put something else in the place of a file or a folder: whoever owns
 * or may write a folder on the way to it. Links are followed, and the folders on their way count as well. In a sticky folder
 * such as /tmp others can add names, but not replace those of root and of this user. (The rule of ssh's StrictModes.)
 *
 * @param path absolute; what is not there is left out
 * @param owner a user who is trusted as well
 * @returns a sentence's end that names the folder; undefined when nobody could
 */
export function whoCouldReplace(path: string, owner?: number): string | undefined {
  const rest = partsOf(resolve(path));
  let at = '/';
  for (let links = 0; ; ) {
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (!found) return undefined;
    if (!isTrusted(found.uid, owner)) return `${at} belongs to ${userOf(found.uid)}`;
    if (found.isSymbolicLink()) {
      links += 1;
      if (links > MOST_LINKS) return `${at} is one of too many links`;
      const target = readlinkSync(at);
      rest.unshift(...partsOf(target));
      at = target.startsWith('/') ? '/' : dirname(at);
      continue;
    }
    const isShared = found.isDirectory() && rest.length > 0 && (found.mode & STICKY) !== 0;
    if (!isShared && mayOthersWrite(found)) return `others may write to ${at} (mode ${octal(found.mode)})`;
    const next = rest.shift();
    if (next === undefined) return undefined;
    at = join(at, next); // `..` of a link too, because no link is left in `at`
  }
}

/** Whether a file or folder is root's or this user's own. @param owner a user who is trusted as well */
export function isTrusted(uid: number, owner?: number): boolean {
  return uid === 0 || uid === process.geteuid?.() || uid === owner;
}

/**
 * Whether a file of a data folder is there: `existsSync` says no as well of what this user may not look at.
 *
 * @throws HF_LOG_UNREADABLE it, or a folder on the way to it, may not be read
 */
export function isReadable(file: string, dir: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') return false;
    const user = userOf(process.geteuid?.() ?? 0);
    throw new KernelError('HF_LOG_UNREADABLE', { file, dir, user }, { cause: error });
  }
}

/** A user of this machine for people, e.g. `user maria (1000)`, or `user 1000` where it has no such user. */
export function userOf(uid: number): string {
  return `user ${nameAndNumber('/etc/passwd', uid)}`;
}

/** A group of this machine for people, e.g. `group staff (50)`, or `group 50` where it has no such group. */
export function groupOf(gid: number): string {
  return `group ${nameAndNumber('/etc/group', gid)}`;
}

function nameAndNumber(file: string, id: number): string {
  const [name] = fieldsOf(file).find(([, , number]) => Number(number) === id) ?? [];
  return name === undefined ? String(id) : `${name} (${id})`;
}

/** The rights in a mode as `chmod` takes them, e.g. `0640`. */
export function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

function mayOthersWrite({ mode, gid }: Stats): boolean {
  if (process.env[SOLE_USER] === '1') return false;
  return (mode & WRITE_OF_OTHERS) !== 0 || ((mode & WRITE_OF_GROUP) !== 0 && hasOthers(gid));
}

/** Whether anybody but root and this user is in a group: with umask 002 each user has a group of their own, which may write. */
function hasOthers(gid: number): boolean {
  const users = fieldsOf('/etc/passwd');
  const [, , , members = ''] = fieldsOf('/etc/group').find(([, , number]) => Number(number) === gid) ?? [];
  const named = members.split(',').filter((name) => name !== '');
  return users.some(
    ([name = '', , uid, group]) => !isTrusted(Number(uid)) && (Number(group) === gid || named.includes(name)),
  );
}

/** The fields of each line of `/etc/passwd` or `/etc/group`; none where it cannot be read. */
function fieldsOf(file: string): string[][] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch {
    return [];
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}
