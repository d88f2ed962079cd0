import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { connectionShare, openFilesLimit } from '../../../../src/core/host/http/connection-limit.ts';
import { commonRoutes, serve } from './support.ts';

test('[C14] idle connections on one surface take nothing from another, and are refused beyond its limit', async (t) => {
  const crowded = await serve(t, { name: 'crowded' }, commonRoutes, 'debug', 5);
  const calm = await serve(t, { name: 'calm' }, commonRoutes, 'debug', 5);
  const sockets = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const socket = connect(crowded.port, '127.0.0.1').on('error', () => {});
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
      return socket;
    }),
  );
  t.teardown(() => sockets.forEach((socket) => void socket.destroy()));
  for (const socket of sockets.slice(5)) if (!socket.closed) await once(socket.resume(), 'close');
  t.is(sockets.filter((socket) => !socket.closed).length, 5);
  t.is((await fetch(`${calm.url}/thing/1`)).status, 200);
  const text = await crowded.metrics.text();
  t.true(text.includes('holdfast_http_connections_refused_total{surface="crowded",status="503"} 35'));
  t.is(crowded.lines.filter(({ msg }) => msg === 'http.connections_full').length, 1, 'said once');
  for (const socket of sockets) socket.destroy();
  let status: number | undefined;
  while (status === undefined) {
    status = await fetch(`${crowded.url}/thing/1`).then(
      (answer) => answer.status,
      () => undefined,
    );
  }
  t.is(status, 200, 'it goes on when they leave');
});

test('[C14] the shares of all listeners leave room for files and for connections to others', (t) => {
  for (const openFiles of [256, 512, 1_024, 4_096, 20_000, 1_048_576]) {
    for (const listeners of [1, 3, 8]) {
      const share = connectionShare(openFiles, listeners);
      t.true(share >= 8 && share <= 4_096);
      t.true(share * listeners <= openFiles - 128, `${share} × ${listeners} of ${openFiles}`);
    }
  }
  t.is(connectionShare(Number.POSITIVE_INFINITY, 4), 4_096);
  t.true(openFilesLimit() > 0);
});
