import type { Http2Server, ServerHttp2Stream } from 'node:http2';
import type * as Grpc from '@grpc/grpc-js';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { OtlpError } from '../errors.ts';
import type { Receiver, Refusal, Share } from './receiver.ts';
import { rpcStatus } from './receiver.ts';

/** Calls that one connection may have open. */
const STREAMS = 64;
/** Clients have one or a few each. */
const MOST_CONNECTIONS = 1_024;
/** An answer comes so long after its message at the latest, ms: what waits longer has been cut off otherwise. */
const ANSWER_MS = 120_000;
/**
 * Connections that nobody uses, or that never said a word, are no load that counts for ever, ms: the ping ends those
 * whose other side is no client at all. Clients connect again by themselves.
 */
const CONNECTIONS = {
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_connection_idle_ms': 5 * 60_000,
} as const;

/** To a call that its client took back: nobody hears it. */
const CANCELLED: Refusal = { reason: 'cancelled', status: 499, grpc: 1, message: 'It was taken back.' };

/** Of the server: what one connection, and one message, may be at the most. @param bodyLimit bytes */
export function serverBounds(bodyLimit: number): Grpc.ServerOptions {
  return {
    'grpc.max_receive_message_length': bodyLimit,
    'grpc.max_concurrent_streams': STREAMS,
    ...CONNECTIONS,
  };
}

/**
 * What comes in without ever being a call, for its path or type is none of ours, or ends as one without the client's
 * doing, has its time too; and so many connections are enough for everybody. The library bounds neither.
 *
 * @param requestTimeoutMs a message comes whole in so long
 */
export function boundStreams(server: Grpc.Server, requestTimeoutMs: number): void {
  const { http2Servers } = server as unknown as { readonly http2Servers: ReadonlyMap<Http2Server, unknown> };
  for (const http2 of http2Servers.keys()) {
    http2.maxConnections = MOST_CONNECTIONS;
    http2.on('stream', (stream) => {
      const over = setTimeout(() => stream.close(), requestTimeoutMs + ANSWER_MS).unref();
      // Answered before its end: what the client may still send is of no use to anybody.
      stream.once('finish', () => stream.readableEnded || stream.close());
      stream.once('close', () => clearTimeout(over));
    });
  }
}

/** Judges a call by its metadata before its message is read, and bounds the message while it comes. */
export function guarded(
  grpc: typeof Grpc,
  call: Grpc.ServerInterceptingCallInterface,
  receiver: () => Receiver,
  requestTimeoutMs: number,
): Grpc.ServerInterceptingCall {
  return new grpc.ServerInterceptingCall(call, {
    start(next) {
      const refuse = (refusal: Refusal) => call.sendStatus(statusOf(grpc, refusal));
      let grow: (bytes: number) => Refusal | undefined;
      const listener = new grpc.ServerListenerBuilder()
        .withOnReceiveMetadata((metadata, admit) => {
          const refusal = receiver().turnAway(presented(metadata), addressOf(call.getPeer()));
          if (refusal) return refuse(refusal);
          const share = receiver().share(0);
          if ('status' in share) return refuse(share);
          const pressed = () => receiver().refuse(new OtlpError('HF_OTLP_PRESSED'));
          const late = () =>
            receiver().refuse(new CoreError('HF_HTTP_REQUEST_SLOW', { ms: requestTimeoutMs }));
          grow = bound(call, { share, refuse, pressed, late, requestTimeoutMs });
          admit(metadata);
        })
        // It may have been inflated.
        .withOnReceiveMessage((message, take) => {
          const refusal = grow((message as Buffer).length);
          return refusal ? refuse(refusal) : take(message);
        })
        .build();
      next(listener);
    },
  });
}

interface Bounds {
  readonly share: Share;
  readonly refuse: (refusal: Refusal) => void;
  readonly pressed: () => Refusal;
  readonly late: () => Refusal;
  readonly requestTimeoutMs: number;
}

/**
 * The library gathers a message without end in time, and tells of it only when it is whole: what comes is counted on
 * the stream itself, and the stream is closed over a client that does not end.
 *
 * @returns counts a message that is whole
 */
function bound(
  call: Grpc.ServerInterceptingCallInterface,
  { share, refuse, pressed, late, requestTimeoutMs }: Bounds,
): (bytes: number) => Refusal | undefined {
  const { stream } = call as unknown as { readonly stream: ServerHttp2Stream };
  let length = 0;
  let refused: Refusal | undefined;
  const grow = (bytes: number) => {
    if (stream.closed) return refused ?? CANCELLED; // its share is given back already
    return share.grow(bytes) ? undefined : pressed();
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

export function statusOf(grpc: typeof Grpc, { grpc: code, message, retrySeconds }: Refusal) {
  const metadata = new grpc.Metadata();
  if (retrySeconds !== undefined) {
    metadata.set('grpc-status-details-bin', rpcStatus(code, message, retrySeconds));
  }
  return { code, details: message, metadata };
}

export function presented(metadata: Grpc.Metadata): string | undefined {
  const [value] = metadata.get('authorization');
  return value?.toString();
}

/** Without the port, which is another one with each connection. */
function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}
