import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { PortForward } from '../../core/contracts/kubernetes.ts';
import type { Connection } from './connection.ts';

/** More connections than an HTTP client's pool needs are a mistake. */
const MOST_CONNECTIONS = 16;

interface Target {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/**
 * Listens on a loopback port; each connection to it becomes a WebSocket of its own to the pod's port, as the API
 * demands.
 *
 * @throws HF_KUBERNETES_CONFIG, HF_KUBERNETES_UNREACHABLE
 */
export async function openForward(
  connection: Connection,
  { namespace, pod, port }: Target,
  signal?: AbortSignal,
): Promise<PortForward> {
  const config = await connection.config();
  const { PortForward } = await import('@kubernetes/client-node');
  const forward = new PortForward(config);
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => open.delete(socket));
    connection
      .deadline(undefined, async () => {
        const web = await forward.portForward(namespace, pod, [port], socket, errorChannel(socket), socket);
        // The caller's type allows a function, which only retries give.
        if (typeof web === 'function') return;
        socket.once('close', () => web.close());
        web.onerror = () => socket.destroy();
        web.onclose = () => socket.end();
        if (socket.destroyed) web.close();
      })
      .catch(() => socket.destroy());
  });
  server.maxConnections = MOST_CONNECTIONS;
  await connection.deadline(signal, async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Receives errors of the pod's side, e.g. that nothing listens on the port, and closes the connection. */
function errorChannel(socket: Socket): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (chunk.length > 0) socket.destroy();
      done();
    },
  });
}
