import { isAbsolute, join, relative } from 'node:path';

/** A unix socket's name has room for 108 bytes, its end included. */
const LONGEST = 107;

/** The name of a data folder's control socket. */
export function controlSocket(dataDir: string): string {
  return join(dataDir, 'control.sock');
}

/** The shorter of a socket's absolute path and the one from here, for a deep data folder leaves little room. */
export function nearPath(file: string): string {
  const near = isAbsolute(file) ? relative(process.cwd(), file) : file;
  return Buffer.byteLength(file) <= LONGEST || near.length >= file.length ? file : near;
}
