/** Limits that grpc-js does not have: the time and memory of a message, and the number of streams. */
import type { Http2Server, ServerHttp2Stream } from 'node:http2';
import { Server } from 'node:net';
import { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import type * as Grpc from '@grpc/grpc-js';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { KeyPair } from '../../../core/host/http/certificate.ts';
import { OtlpError } from '../errors.ts';
import { type BudgetShare, type Receiver, type Refusal, rpcStatus } from './receiver.ts';

/** Calls that one connection may have open. */
const MOST_STREAMS = 64;
/** Clients have one or a few each. Where the process may open few files, the share of the listener is smaller. */
export const MOST_CONNECTIONS = 1_024;
/** The longest time between the end of a message and that of its answer, ms. */
const ANSWER_MS = 120_000;
/** Unused connections are closed, and a ping finds those whose other side is gone, ms. Clients connect again by themselves. */
const CONNECTIONS = {
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_connection_idle_ms': 5 * 60_000,
} as const;

/** The refusal of a call that its client cancelled; nobody reads it. */
const CANCELLED: Refusal = { reason: 'cancelled', status: 499, grpc: 1, message: 'It was cancelled.' };

/** @param bodyLimit of one message, bytes */
export function serverOptions(bodyLimit: number): Grpc.ServerOptions {
  return {
    'grpc.max_receive_message_length': bodyLimit,
    'grpc.max_concurrent_streams': MOST_STREAMS,
    ...CONNECTIONS,
  };
}

/**
 * Bounds the connections, and the time of every stream, including streams that never become a call because their path or
 * content type is none of ours, and calls whose stream the client leaves open.
 *
 * @param requestTimeoutMs in which a message comes whole
 * @param maxConnections beyond which connections are closed at once
 */
export function boundStreams(server: Grpc.Server, requestTimeoutMs: number, maxConnections: number): void {
  for (const http2 of http2Servers(server)) {
    http2.maxConnections = maxConnections;
    http2.on('stream', (stream) => {
      const over = setTimeout(() => stream.close(), requestTimeoutMs + ANSWER_MS).unref();
      // A stream that is answered before its end is closed, because the rest of the message is not read.
      stream.once('finish', () => stream.readableEnded || stream.close());
      stream.once('close', () => clearTimeout(over));
    });
  }
}

/** Serves another certificate to new connections. */
export function renewCertificate(server: Grpc.Server, { cert, key }: Pick<KeyPair, 'cert' | 'key'>): void {
  for (const http2 of http2Servers(server)) {
    if (http2 instanceof TlsServer) http2.setSecureContext({ cert, key, minVersion: 'TLSv1.2' });
  }
}

function http2Servers(server: Grpc.Server): Http2Server[] {
  const servers: unknown = Reflect.get(server, 'http2Servers');
  return [...(servers instanceof Map ? servers.keys() : [])].filter(isHttp2Server);
}

/** Admits a call by its metadata before its message is read, and bounds the message while it comes. */
export function admitted(
  grpc: typeof Grpc,
  call: Grpc.ServerInterceptingCallInterface,
  receiver: Receiver,
  requestTimeoutMs: number,
): Grpc.ServerInterceptingCall {
  return new grpc.ServerInterceptingCall(call, {
    start(next) {
      const refuse = (refusal: Refusal) => call.sendStatus(statusOf(grpc, refusal));
      let grow: (bytes: number) => Refusal | undefined;
      const listener = new grpc.ServerListenerBuilder()
        .withOnReceiveMetadata((metadata, admit) => {
          const refusal = receiver.refusalOf(authorizationOf(metadata), addressOf(call.getPeer()));
          if (refusal) return refuse(refusal);
          const share = receiver.share(0);
          if ('status' in share) return refuse(share);
          const overloaded = () => receiver.refuse(new OtlpError('HF_OTLP_OVERLOADED'));
          const late = () => receiver.refuse(new HostError('HF_HTTP_REQUEST_SLOW', { ms: requestTimeoutMs }));
          grow = boundMessage(call, { share, refuse, overloaded, late, requestTimeoutMs });
          admit(metadata);
        })
        // The whole message; the library has inflated it, so it may be larger than what came.
        .withOnReceiveMessage((message: Buffer, take) => {
          const refusal = grow(message.length);
          return refusal ? refuse(refusal) : take(message);
        })
        .build();
      next(listener);
    },
  });
}

interface MessageBounds {
  readonly share: BudgetShare;
  readonly refuse: (refusal: Refusal) => void;
  readonly overloaded: () => Refusal;
  readonly late: () => Refusal;
  readonly requestTimeoutMs: number;
}

/**
 * The library collects a message without a limit of time and reports it only when it is whole. So its bytes are counted on
 * the stream itself, which is closed when the client does not finish in time.
 *
 * @returns grows the share to the size of the whole message
 */
function boundMessage(
  call: Grpc.ServerInterceptingCallInterface,
  { share, refuse, overloaded, late, requestTimeoutMs }: MessageBounds,
): (bytes: number) => Refusal | undefined {
  const stream: unknown = Reflect.get(call, 'stream');
  if (!isHttp2Stream(stream)) throw new TypeError('a call of grpc-js has no stream');
  let length = 0;
  let refused: Refusal | undefined;
  const grow = (bytes: number) => {
    if (stream.closed) return refused ?? CANCELLED; // its share is released already
    return share.grow(bytes) ? undefined : overloaded();
  };
  const end = (refusal: Refusal) => {
    refused = refusal;
    refuse(refusal);
    stream.close();
  };
  const timer = setTimeout(() => end(late()), requestTimeoutMs).unref();
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length;
    const refusal = refused ? undefined : grow(length);
    if (refusal) end(refusal);
  });
  stream.once('end', () => clearTimeout(timer));
  stream.once('close', () => {
    clearTimeout(timer);
    share.release();
  });
  return grow;
}

export function statusOf(grpc: typeof Grpc, refusal: Refusal) {
  const metadata = new grpc.Metadata();
  if (refusal.retrySeconds !== undefined) metadata.set('grpc-status-details-bin', rpcStatus(refusal));
  return { code: refusal.grpc, details: refusal.message, metadata };
}

export function authorizationOf(metadata: Grpc.Metadata): string | undefined {
  const [value] = metadata.get('authorization');
  return value?.toString();
}

/** Without the port, which is another one with each connection. */
function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}

function isHttp2Server(value: unknown): value is Http2Server {
  return value instanceof Server;
}

function isHttp2Stream(value: unknown): value is ServerHttp2Stream {
  return value instanceof Duplex && 'close' in value;
}
