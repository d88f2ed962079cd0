import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Uid, uidInRow, uidOf } from '../../../../src/core/host/http/peer.ts';
import { tempDir } from '../../../support/temp.ts';

const NOBODY = 65_534;
const isRoot = process.geteuid?.() === 0;
const own = process.geteuid?.() ?? 0;

const CLIENT = `
  const socket = require('node:net').connect(JSON.parse(process.argv[1]), () => socket.write('x'));
  socket.on('data', () => process.exit(0));
`;

/** Has a child of a user connect, and gives what is said of the other end. */
async function askedOf(
  t: ExecutionContext,
  listen: { port: 0; host: string } | { path: string },
  uid: number,
  connectTo?: (port: number) => object,
): Promise<Uid | undefined> {
  const server = createServer();
  t.teardown(() => server.close());
  server.listen(listen);
  await new Promise((resolve) => server.once('listening', resolve));
  if ('path' in listen) chmodSync(listen.path, 0o666);
  const address = server.address();
  const target =
    typeof address === 'object' && address
      ? (connectTo?.(address.port) ?? { port: address.port, host: address.address })
      : { path: 'path' in listen ? basename(listen.path) : '' };
  const child = spawn(process.execPath, ['-e', CLIENT, JSON.stringify(target)], {
    uid,
    // A socket is named in its folder: those above may be closed to others.
    cwd: 'path' in listen ? dirname(listen.path) : '/',
    stdio: 'ignore',
  });
  t.teardown(() => child.kill('SIGKILL'));
  const socket = await new Promise<Socket>((resolve) => server.once('connection', resolve));
  socket.on('error', () => {});
  const said = await uidOf(socket);
  t.is(await uidOf(socket), said, 'asked once for each connection');
  socket.end('x');
  return said;
}

for (const uid of isRoot ? [0, NOBODY] : [own]) {
  test.serial(`[C14] the kernel names user ${uid} at the other end of a loopback connection`, async (t) => {
    t.is(await askedOf(t, { port: 0, host: '127.0.0.1' }, uid), uid);
    t.is(await askedOf(t, { port: 0, host: '::1' }, uid), uid);
    t.is(
      await askedOf(t, { port: 0, host: '::' }, uid, (port) => ({ port, host: '127.0.0.1' })),
      uid,
      'mapped',
    );
  });

  test.serial(`[C14] the kernel names user ${uid} at the other end of a Unix socket`, async (t) => {
    let said: Uid | undefined = 'unknown';
    // On a busy machine who asks may not have started within its second.
    for (let turn = 0; said === 'unknown' && turn < 20; turn += 1) {
      const dir = tempDir(t);
      chmodSync(dir, 0o755);
      said = await askedOf(t, { path: join(dir, 's') }, uid);
    }
    t.is(said, uid);
  });
}

test.serial('[C14] a connection whose process is gone is nobody’s, not root’s', async (t) => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const child = spawn(process.execPath, ['-e', CLIENT, JSON.stringify({ port, host: '127.0.0.1' })], {
    stdio: 'ignore',
  });
  const socket = await new Promise<Socket>((resolve) => server.once('connection', resolve));
  socket.on('error', () => {});
  t.teardown(() => socket.destroy());
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('close', resolve));
  t.is(await uidOf(socket), 'unknown');
});

test.serial('[C14] a row of the kernel’s table counts only with an inode', (t) => {
  const row = (uid: string, inode: string) =>
    `01 00000000:00000000 00:00000000 00000000 ${uid}  0 ${inode} 2 0000`;
  t.is(uidInRow(row('1000', '4711')), 1_000);
  t.is(uidInRow(row('0', '4711')), 0);
  t.is(uidInRow(row('0', '0')), undefined, 'TIME_WAIT and SYN_RECV have none, and root as their user');
  t.is(uidInRow('06'), undefined);
});

test.serial(
  '[C14] many connections to a Unix socket at once are all named, or unknown once their second is over',
  async (t) => {
    const dir = tempDir(t);
    const server = createServer().listen(join(dir, 's'));
    t.teardown(() => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const sockets: Socket[] = [];
    server.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
    const { connect } = await import('node:net');
    const clients = Array.from({ length: 100 }, () => connect(join(dir, 's')).on('error', () => {}));
    t.teardown(() => {
      for (const socket of [...clients, ...sockets]) socket.destroy();
    });
    while (sockets.length < 100) await new Promise((resolve) => setTimeout(resolve, 5));
    const said = await Promise.all(sockets.map(uidOf));
    t.true(said.every((uid) => uid === own || uid === 'unknown'));
    t.log(`${said.filter((uid) => uid === own).length} are named`);
  },
);
