import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncPath } from './durable-file.ts';
import { KernelError } from './errors/kernel-error.ts';
import { isTrusted, octal, userOf, whoCouldReplace } from './ownership.ts';

/** No key or password of ours is longer; a larger file is not what it should be. */
const LARGEST_SECRET_BYTES = 64 * 1024;
const OTHERS = 0o077;
const NEW_AND_DURABLE = { flag: 'wx', mode: 0o600, flush: true } as const;

/**
 * Reads a secret file as it is now. Its mode is checked on the opened file, so nobody can swap it in between.
 *
 * @param file absolute path
 * @param largest bytes that it may have; 64 KiB unless set
 * @param owner a user whose file it may be as well: that of the data folder whose log is read
 * @throws HF_CONFIG_SECRET_MISSING there is no such file, or it cannot be opened
 * @throws HF_CONFIG_SECRET_MODE group or others have any right on it
 * @throws HF_CONFIG_SECRET_OWNER it is neither root's nor this user's
 * @throws HF_CONFIG_SECRET_FOLDER others could put another file in its place
 * @throws HF_CONFIG_SECRET_INVALID it is not a regular file, or larger than that
 */
export function readSecretFile(file: string, largest = LARGEST_SECRET_BYTES, owner?: number): Buffer {
  const descriptor = openSecret(file);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) invalid(file, 'it is not a regular file');
    if ((stat.mode & OTHERS) !== 0) {
      throw new KernelError('HF_CONFIG_SECRET_MODE', { file, mode: octal(stat.mode) });
    }
    checkOwner(file, stat, owner);
    if (stat.size > largest) invalid(file, `it is larger than ${largest} bytes`);
    const content = Buffer.alloc(stat.size);
    return content.subarray(0, readSync(descriptor, content, 0, stat.size, 0));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates a secret file, mode 0600, in a folder of mode 0700, and makes both durable. Whole or not at all: of
 * several creators at once one wins, and nobody ever sees a part of it.
 *
 * @returns false when the file was there already; it is then left as it is
 * @throws HF_CONFIG_SECRET_FOLDER others may change the folder, or one on the way to it
 */
export function createSecretFile(file: string, content: Uint8Array): boolean {
  const folder = ownFolder(file);
  if (existsSync(file)) return false;
  const draft = draftOf(file);
  try {
    writeFileSync(draft, content, NEW_AND_DURABLE);
    linkSync(draft, file); // unlike a rename, a link never replaces what another process has just made
    syncPath(folder);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    removeDraft(draft);
  }
}

/**
 * Puts a secret file, mode 0600, in the place of one that may be there, and makes it durable. Whoever reads meanwhile
 * has the old content or the new one, never a part.
 *
 * @throws HF_CONFIG_SECRET_FOLDER others may change the folder, or one on the way to it
 */
export function replaceSecretFile(file: string, content: Uint8Array): void {
  const folder = ownFolder(file);
  const draft = draftOf(file);
  try {
    writeFileSync(draft, content, NEW_AND_DURABLE);
    renameSync(draft, file);
    syncPath(folder);
  } finally {
    removeDraft(draft);
  }
}

/** Takes a secret file away, durably; that it is gone already is no error. */
export function removeSecretFile(file: string): void {
  if (!existsSync(file)) return;
  removeDraft(file);
  syncPath(dirname(file));
}

/**
 * Checks who could have written an opened file, or put it there. The owner is that of the opened file, so that no other one can be
 * put in its place in between; and a file of root or this user, whoever linked it there, holds what they wrote.
 *
 * @throws HF_CONFIG_SECRET_OWNER, HF_CONFIG_SECRET_FOLDER
 */
function checkOwner(file: string, { uid }: Pick<Stats, 'uid'>, owner?: number): void {
  if (!isTrusted(uid, owner))
    throw new KernelError('HF_CONFIG_SECRET_OWNER', {
      file,
      owner: userOf(uid),
      user: userOf(process.geteuid?.() ?? 0),
    });
  const reason = whoCouldReplace(file, owner);
  if (reason !== undefined) throw new KernelError('HF_CONFIG_SECRET_FOLDER', { file, reason });
}

/** The folder of a secret file, made when it is not there. */
function ownFolder(file: string): string {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Whoever may write into the folder may put another key in place of ours, whatever the file's own mode.
  const { mode } = statSync(folder);
  const isOpen = (mode & 0o022) !== 0;
  const reason = isOpen ? `others may write to ${folder} (mode ${octal(mode)})` : whoCouldReplace(folder);
  if (reason !== undefined) throw new KernelError('HF_CONFIG_SECRET_FOLDER', { file, reason });
  return folder;
}

function draftOf(file: string): string {
  return join(dirname(file), `.${basename(file)}.${process.pid}.${randomBytes(6).toString('hex')}`);
}

function openSecret(file: string): number {
  try {
    // Non-blocking, or opening a pipe that somebody put there would wait for its writer for ever.
    return openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new KernelError(
      'HF_CONFIG_SECRET_MISSING',
      { file, reason: errno(error) ?? 'it cannot be opened' },
      { cause: error },
    );
  }
}

function removeDraft(draft: string): void {
  try {
    unlinkSync(draft);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

function invalid(file: string, reason: string): never {
  throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
}

function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function isErrno(error: unknown, code: string): boolean {
  return errno(error) === code;
}
