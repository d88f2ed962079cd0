import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';
import ipaddr from 'ipaddr.js';
import { isLoopback } from '../../core/host/http/admission.ts';

/** An address at which a process of this machine listens. */
export interface Listening {
  /** E.g. `127.0.0.1`, or `0.0.0.0` for every address. */
  readonly address: string;
  /** Who runs the process. */
  readonly uid: number;
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
/** The state LISTEN in the kernel's tables. */
const LISTEN = '0A';

/**
 * Who listens on a port, as the kernel says.
 *
 * @returns undefined where this system has no such tables
 */
export function listeningOn(port: number): readonly Listening[] | undefined {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  let isRead = false;
  const found = TABLES.flatMap((file) => {
    const rows = rowsOf(file);
    isRead ||= rows !== undefined;
    return (rows ?? []).flatMap((row) => {
      const [, local = '', , state, , , , uid] = row.trim().split(/\s+/);
      if (state !== LISTEN || !local.endsWith(wanted)) return [];
      return [{ address: addressOf(local.slice(0, -5)), uid: Number(uid) }];
    });
  });
  return isRead ? found : undefined;
}

function rowsOf(file: string): string[] | undefined {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(1);
  } catch {
    return undefined;
  }
}

/** @param hex 8 digits for each 32 bits, in the order of bytes of the machine */
function addressOf(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => {
    const ordered = word.match(/../g) ?? [];
    return endianness() === 'LE' ? ordered.reverse() : ordered;
  });
  return ipaddr.fromByteArray(bytes.map((byte) => Number.parseInt(byte, 16))).toString();
}

/** Who reaches one of these addresses, for a person. */
export function reachText(listening: readonly Listening[]): string {
  const beyond = listening.map(({ address }) => address).filter((address) => !isLoopback(address));
  if (beyond.length === 0) return 'every user of this machine';
  const everywhere = beyond.some((address) => address === '0.0.0.0' || address === '::');
  return everywhere
    ? 'every machine that reaches this one'
    : `every machine that reaches ${beyond.join(', ')}`;
}
