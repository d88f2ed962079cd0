import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import test from 'ava';
import { HeldConnection } from '../../../../src/plugins/router/remote/held-connection.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

test('[C3] a clock that is set back does not put off the next connection', async (t) => {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const made = () => once(server, 'connection') as Promise<[Socket]>;
  const address = server.address();
  if (typeof address !== 'object' || address === null) return t.fail();
  const clock = new VirtualClock();
  const ended = Promise.withResolvers<void>();
  const held = new HeldConnection(`http://127.0.0.1:${address.port}`, clock, ended.resolve);
  t.teardown(() => held.stop());
  const first = made();
  held.hold();
  await Promise.all([first, ended.promise]);
  clock.set(-3_600_000);
  const second = made();
  held.hold();
  await clock.advance(1_000);
  await second;
  t.is(clock.armed, 0);
});
