import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { NatsConnection } from '@nats-io/transport-node';

/** A connection to a server of NATS. */
export interface Dialled {
  readonly connection: NatsConnection;
  /** The bytes that have come over it, also of a message of which the rest is on its way. */
  readonly received: () => number;
}

interface Call {
  socket?: Socket;
}

/** On it Node tells of each new socket of a client (node:diagnostics_channel). */
const CHANNEL = 'net.client.socket';
/** Tells which call made a socket. */
const calls = new AsyncLocalStorage<Call>();

/**
 * Connects, and notes the socket by the way: the client of NATS counts a message when all of it is there.
 *
 * @throws what `connect` throws
 */
export async function dialled(connect: () => Promise<NatsConnection>): Promise<Dialled> {
  const call: Call = {};
  const note = (message: unknown) => {
    if (calls.getStore() !== call) return;
    if (message instanceof Object && 'socket' in message && message.socket instanceof Socket)
      call.socket = message.socket;
  };
  subscribe(CHANNEL, note);
  try {
    const connection = await calls.run(call, connect);
    return { connection, received: () => call.socket?.bytesRead ?? connection.stats().inBytes };
  } finally {
    unsubscribe(CHANNEL, note);
  }
}
