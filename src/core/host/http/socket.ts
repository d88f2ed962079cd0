import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { whoCouldReplace } from '../../kernel/ownership.ts';
import { HostError } from '../errors/host-error.ts';
import { nearPath } from './addresses.ts';
import type { SocketOptions } from './listen-options.ts';

const PROBE_MS = 1_000;

/**
 * Listens on a Unix socket. The socket gets its rights in a folder that nobody else may enter, and then its name: there is
 * no moment at which somebody could connect who may not. One that a killed process left is replaced.
 *
 * @param socket its path is absolute
 * @param surface name for errors; undefined for the control socket, whose folder is the data folder whatever its rights
 * @returns the path without links on the way, and what removes the socket
 * @throws HF_HTTP_SOCKET something else has that path, its folder is not safe, or the group is not known or not allowed
 */
export async function listenOnSocket(
  app: FastifyInstance,
  { path: given, mode, group }: SocketOptions,
  surface: string | undefined,
): Promise<{ readonly path: string; readonly remove: () => void }> {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new HostError('HF_HTTP_SOCKET', { surface: surface ?? 'control', path: given, reason }, { cause });
  };
  const folder = realFolder(dirname(given));
  if (folder === undefined) return refuse(`the folder ${dirname(given)} does not exist`);
  const path = join(folder, basename(given));
  // Whoever may change a folder on the way may put a socket of their own in its place, and hear what clients send.
  const unsafe = surface === undefined ? undefined : whoCouldReplace(folder);
  if (unsafe !== undefined) refuse(unsafe);
  const gid = group === undefined ? undefined : groupId(group);
  if (group !== undefined && gid === undefined)
    refuse(`there is no group ${group}; its number would do, too`);
  await clearName(path, refuse);
  let draft: string | undefined;
  try {
    draft = mkdtempSync(join(folder, '.s'));
    const drafted = join(draft, 's');
    await app.listen({ path: nearPath(drafted) });
    if (gid !== undefined) chownSync(drafted, -1, gid);
    chmodSync(drafted, Number.parseInt(mode, 8));
    renameSync(drafted, path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reasons: Readonly<Record<string, string>> = {
      EACCES: `this user may not write into ${folder}`,
      EPERM: `this user may not give it to the group ${group}`,
      EINVAL: 'the path is longer than the 107 bytes that a socket may have',
    };
    return refuse(reasons[code] ?? (code || String(error)), error);
  } finally {
    if (draft !== undefined) rmdirSync(draft);
  }
  const { ino } = lstatSync(path);
  const remove = () => {
    // Another instance may have put its own in this place meanwhile.
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
  };
  return { path, remove };
}

function realFolder(folder: string): string | undefined {
  try {
    return realpathSync(folder);
  } catch {
    return undefined;
  }
}

/** @throws what `refuse` throws, when the path is taken by anything but the socket of a process that is gone */
async function clearName(path: string, refuse: (reason: string) => never): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) refuse('something that is no socket has that path');
  if (await answers(path)) refuse('another process listens on it');
  rmSync(path, { force: true });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path: nearPath(path), timeout: PROBE_MS });
    const end = (isThere: boolean) => () => {
      probe.destroy();
      resolve(isThere);
    };
    probe.once('connect', end(true)).once('timeout', end(true));
    probe.once('error', ({ code }: NodeJS.ErrnoException) =>
      end(code !== 'ECONNREFUSED' && code !== 'ENOENT')(),
    );
  });
}

/** @returns the number of a group of this machine (`/etc/group`); undefined when it has none of that name */
function groupId(group: string | number): number | undefined {
  if (typeof group === 'number') return group;
  if (/^\d{1,10}$/.test(group)) return Number(group);
  const line = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`${group}:`));
  const id = line?.split(':')[2];
  return id === undefined ? undefined : Number(id);
}
