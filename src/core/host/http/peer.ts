import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { Semaphore } from '../concurrency.ts';
import { endsWithin } from '../deadline.ts';
import { isLoopback } from './admission.ts';

/** A user id, or `unknown` where the system did not say in time. */
export type Uid = number | 'unknown';

const DEADLINE_MS = 1_000;
const CHUNK_BYTES = 64 * 1024;
/** Some 100,000 connections; further rows are not looked at. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Processes that ask at one time; further connections wait for one of them, until their deadline. */
const MOST_ASKING = 4;

const answers = new WeakMap<Socket, Promise<Uid | undefined>>();

/**
 * The user of this machine at the other end of a connection, as the kernel says. It is asked for once for each connection,
 * in the background and for at most a second.
 *
 * @returns undefined where the other end is another machine; it never rejects
 */
export function uidOf(socket: Socket): Promise<Uid | undefined> {
  const answer = answers.get(socket) ?? inTime(ask(socket));
  answers.set(socket, answer);
  return answer;
}

async function ask(socket: Socket): Promise<Uid | undefined> {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (remoteAddress === undefined) return askProcess(socket);
  if (remotePort === undefined || localPort === undefined || localAddress === undefined) return 'unknown';
  // Only the own addresses of a machine talk to themselves.
  if (!isLoopback(remoteAddress) && remoteAddress !== localAddress) return undefined;
  const theirs = { address: remoteAddress, port: remotePort };
  const ours = { address: localAddress, port: localPort };
  return (
    (await readTable('/proc/net/tcp', rowOf(theirs, ours, 4))) ??
    (await readTable('/proc/net/tcp6', rowOf(theirs, ours, 6))) ??
    'unknown'
  );
}

async function inTime(asking: Promise<Uid | undefined>): Promise<Uid | undefined> {
  try {
    return (await endsWithin(DEADLINE_MS, asking)) ? await asking : 'unknown';
  } catch {
    return 'unknown';
  }
}

interface End {
  readonly address: string;
  readonly port: number;
}

/** How the kernel's table of connections writes both ends, e.g. `0100007F:C350 0100007F:2285`; undefined without such a row. */
function rowOf(local: End, remote: End, family: 4 | 6): string | undefined {
  const [one, other] = [hexOf(local, family), hexOf(remote, family)];
  return one === undefined || other === undefined ? undefined : ` ${one} ${other} `;
}

/** Each 32 bits of an address are a number in the order of bytes of the machine. */
function hexOf({ address, port }: End, family: 4 | 6): string | undefined {
  const parsed = ipaddr.process(address);
  const sized = family === 6 && parsed instanceof ipaddr.IPv4 ? parsed.toIPv4MappedAddress() : parsed;
  const bytes = sized.toByteArray();
  if (bytes.length !== (family === 4 ? 4 : 16)) return undefined;
  const words = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.slice(index * 4, index * 4 + 4));
  const ordered = endianness() === 'LE' ? words.map((word) => word.reverse()) : words;
  const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, '0');
  return `${ordered
    .flat()
    .map((byte) => hex(byte, 2))
    .join('')}:${hex(port, 4)}`;
}

/** @param row both ends, as the table has them @returns undefined where the table has no such row */
async function readTable(file: string, row: string | undefined): Promise<number | undefined> {
  if (row === undefined) return undefined;
  const table = await open(file);
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let rest = '';
    for (let read = 0; read < MOST_BYTES; ) {
      const { bytesRead } = await table.read(buffer, 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return undefined;
      read += bytesRead;
      const text = rest + buffer.toString('latin1', 0, bytesRead);
      const at = text.indexOf(row);
      const end = at === -1 ? -1 : text.indexOf('\n', at);
      if (end !== -1) return uidInRow(text.slice(at + row.length, end));
      rest = text.slice(text.lastIndexOf('\n') + 1);
    }
    return undefined;
  } finally {
    await table.close();
  }
}

/**
 * The user of a row of `/proc/net/tcp`. A connection whose process is gone, or that is only half made, has no inode, and root as its user:
 * of that nothing is known.
 *
 * @param fields those behind both addresses
 */
export function uidInRow(fields: string): number | undefined {
  const [, , , , uid, , inode] = fields.trim().split(/\s+/);
  return inode === undefined || inode === '0' || !/^\d+$/.test(uid ?? '') ? undefined : Number(uid);
}

/**
 * Node does not tell what SO_PEERCRED says, so a child that inherits the connection asks for it, by the interpreters that
 * systems have. It reads nothing of the connection.
 */
const INTERPRETERS: readonly (readonly [command: string, ...args: string[]])[] = [
  [
    '/usr/bin/perl',
    '-e',
    'use Socket qw(SOL_SOCKET SO_PEERCRED); open(my $s, "+<&=", 3) or exit 1; my $c = getsockopt($s, SOL_SOCKET, SO_PEERCRED) or exit 1; print((unpack("i3", $c))[1])',
  ],
  [
    '/usr/bin/python3',
    '-I',
    '-S',
    '-c',
    'import _socket as s, struct; print(struct.unpack("3i", s.socket(fileno=3).getsockopt(s.SOL_SOCKET, s.SO_PEERCRED, 12))[1])',
  ],
];
const asking = new Semaphore(MOST_ASKING);

async function askProcess(socket: Socket): Promise<Uid> {
  const until = performance.now() + DEADLINE_MS;
  return asking.run(async () => {
    for (const [command, ...args] of INTERPRETERS) {
      // After a flood nobody waits any more for those that were late.
      if (socket.destroyed || performance.now() > until) return 'unknown';
      const answer = await outputOf(command, args, socket);
      if (/^\d+$/.test(answer)) return Number(answer);
    }
    return 'unknown';
  });
}

/** @returns what it printed; nothing where it could not run. Standard error and input are none of the connection's. */
function outputOf(command: string, args: readonly string[], socket: Socket): Promise<string> {
  // As a number: Node would stop reading from a socket that it gave to a child, and its request would never end.
  const descriptor = (socket as Socket & { readonly _handle?: { readonly fd?: number } })._handle?.fd;
  if (descriptor === undefined || descriptor < 0) return Promise.resolve('');
  return new Promise((resolve) => {
    // The connection is the fourth descriptor: of the first three, libuv would make it one whose reads block.
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'ignore', descriptor],
      env: {},
      cwd: '/',
      timeout: DEADLINE_MS,
      killSignal: 'SIGKILL',
    });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.once('error', () => resolve(''));
    child.once('close', () => resolve(output.trim()));
  });
}

/** The most requests that are remembered; a write is recorded within moments of its request. */
const MOST_REQUESTS = 10_000;

/**
 * Which user of this machine sent each write, by the correlation id of its request, for the records that it leads to; none
 * where no process of this machine sent it, or its surface does not record senders.
 */
export type Senders = LRUCache<string, Uid>;

export function makeSenders(): Senders {
  return new LRUCache({ max: MOST_REQUESTS });
}
