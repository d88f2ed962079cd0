import type { Http2Server, ServerHttp2Stream } from 'node:http2';
import type * as Grpc from '@grpc/grpc-js';
import { HoldfastError } from '../../../core/errors/index.ts';
import type { Listener } from '../../../core/http/index.ts';
import type { Logger } from '../../../core/logging/index.ts';
import type { Signal } from '../decode/index.ts';
import type { Share } from './budget.ts';
import type { Receiver, Refusal } from './receiver.ts';
import { exportResponse, rpcStatus } from './wire.ts';

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

const late = (ms: number): Refusal => ({
  reason: 'late',
  status: 408,
  grpc: 4,
  message: `The message did not come whole within ${ms} ms.`,
});

const METHODS: readonly [Signal, string][] = [
  ['traces', 'trace.v1.TraceService'],
  ['metrics', 'metrics.v1.MetricsService'],
  ['logs', 'logs.v1.LogsService'],
];

export interface GrpcParts {
  readonly receiver: () => Receiver;
  /** Largest message, bytes. */
  readonly bodyLimit: number;
  /** A message comes whole in so long, ms. */
  readonly requestTimeoutMs: number;
  readonly logger: () => Logger;
}

export interface GrpcListenerOptions extends GrpcParts {
  readonly name: string;
  readonly host: string;
  /** 0 means any free one. */
  readonly port: number;
  readonly portVariable: string;
  /** Plain unless given; may throw what is wrong with the certificates. */
  readonly credentials?: (grpc: typeof Grpc) => Grpc.ServerCredentials;
  /** Called when the listener is closed. */
  readonly closed?: () => void;
}

/**
 * OTLP/gRPC (O3): the same receiver as OTLP/HTTP.
 *
 * @throws HF_HTTP_LISTEN of its `listen`: the port cannot be had
 */
export function grpcListener(options: GrpcListenerOptions): Listener {
  const { name, host, port, portVariable } = options;
  let server: Grpc.Server | undefined;
  return {
    name,
    async listen() {
      const grpc = await import('@grpc/grpc-js');
      const credentials = options.credentials?.(grpc);
      server = serverOf(grpc, options);
      try {
        const bound = await bind(
          server,
          `${bracketed(host)}:${port}`,
          credentials ?? grpc.ServerCredentials.createInsecure(),
        );
        boundStreams(server, options.requestTimeoutMs + ANSWER_MS);
        const url = `${credentials ? 'https' : 'http'}://${bracketed(reachable(host))}:${bound}`;
        options.logger().info({ url, surface: name }, 'grpc.listening');
        return { url };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new HoldfastError('HF_HTTP_LISTEN', {
          surface: name,
          host,
          port,
          variable: portVariable,
          reason,
        });
      }
    },
    async close(deadlineMs) {
      if (!server) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(() => {
        server?.forceShutdown();
        resolve();
      }, deadlineMs);
      server.tryShutdown(() => resolve());
      await promise;
      clearTimeout(timer);
      options.closed?.();
    },
  };
}

/**
 * What comes in without ever being a call, for its path or type is none of ours, or ends as one without the client's
 * doing, has its time too; and so many connections are enough for everybody. The library bounds neither.
 */
function boundStreams(server: Grpc.Server, mostMs: number): void {
  const { http2Servers } = server as unknown as { readonly http2Servers: ReadonlyMap<Http2Server, unknown> };
  for (const http2 of http2Servers.keys()) {
    http2.maxConnections = MOST_CONNECTIONS;
    http2.on('stream', (stream) => {
      const over = setTimeout(() => stream.close(), mostMs).unref();
      // Answered before its end: what the client may still send is of no use to anybody.
      stream.once('finish', () => stream.readableEnded || stream.close());
      stream.once('close', () => clearTimeout(over));
    });
  }
}

function serverOf(grpc: typeof Grpc, { receiver, bodyLimit, requestTimeoutMs }: GrpcParts): Grpc.Server {
  const server = new grpc.Server({
    'grpc.max_receive_message_length': bodyLimit,
    'grpc.max_concurrent_streams': STREAMS,
    ...CONNECTIONS,
    interceptors: [(_method, call) => guarded(grpc, call, receiver, requestTimeoutMs)],
  });
  const same = (bytes: Buffer) => bytes;
  for (const [signal, service] of METHODS) {
    const path = `/opentelemetry.proto.collector.${service}/Export`;
    const method = { path, requestStream: false, responseStream: false } as const;
    const codec = {
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    };
    server.addService(
      { Export: { ...method, ...codec } },
      {
        Export: (call: Grpc.ServerUnaryCall<Buffer, Buffer>, answer: Grpc.sendUnaryData<Buffer>) =>
          void serve(grpc, receiver(), signal, call, answer),
      },
    );
  }
  return server;
}

/** Judges a call by its metadata before its message is read, and bounds the message while it comes. */
function guarded(
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
          const pressed = () => receiver().refuse('HF_INGEST_PRESSED');
          grow = bound(call, { share, refuse, pressed, requestTimeoutMs });
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
  { share, refuse, pressed, requestTimeoutMs }: Bounds,
): (bytes: number) => Refusal | undefined {
  const { stream } = call as unknown as { readonly stream: ServerHttp2Stream };
  let length = 0;
  const grow = (bytes: number) => {
    if (stream.closed) return late(requestTimeoutMs);
    return share.grow(bytes) ? undefined : pressed();
  };
  const end = (refusal: Refusal) => {
    refuse(refusal);
    stream.close();
  };
  const timer = setTimeout(() => end(late(requestTimeoutMs)), requestTimeoutMs).unref();
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length;
    const refusal = grow(length);
    if (refusal) end(refusal);
  });
  stream.once('end', () => clearTimeout(timer));
  stream.once('close', () => {
    clearTimeout(timer);
    share.release();
  });
  return grow;
}

async function serve(
  grpc: typeof Grpc,
  receiver: Receiver,
  signal: Signal,
  call: Grpc.ServerUnaryCall<Buffer, Buffer>,
  answer: Grpc.sendUnaryData<Buffer>,
): Promise<void> {
  try {
    const body = { signal, encoding: 'protobuf', gzip: false, bytes: call.request } as const;
    const outcome = await receiver.take(body, presented(call.metadata) ?? '');
    if ('refusal' in outcome) return answer(statusOf(grpc, outcome.refusal));
    answer(null, exportResponse(outcome.accepted.refused, outcome.accepted.message));
  } catch {
    answer({ code: grpc.status.INTERNAL, details: 'The request could not be handled.' });
  }
}

function statusOf(grpc: typeof Grpc, { grpc: code, message, retrySeconds }: Refusal) {
  const metadata = new grpc.Metadata();
  if (retrySeconds !== undefined) {
    metadata.set('grpc-status-details-bin', rpcStatus(code, message, retrySeconds));
  }
  return { code, details: message, metadata };
}

function presented(metadata: Grpc.Metadata): string | undefined {
  const [value] = metadata.get('authorization');
  return value?.toString();
}

/** Without the port, which is another one with each connection. */
function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}

function bind(server: Grpc.Server, address: string, credentials: Grpc.ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** A wildcard address is no destination; loopback always reaches it. */
function reachable(host: string): string {
  return host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
}
