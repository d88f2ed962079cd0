import type * as Grpc from '@grpc/grpc-js';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { bracketed, urlOf } from '../../../core/host/http/addresses.ts';
import type { Listener } from '../../../core/host/http/contract.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Signal } from '../decode/decode.ts';
import { admitted, authorizationOf, boundStreams, serverOptions, statusOf } from './grpc-bounds.ts';
import { exportResponse, type Receiver } from './receiver.ts';

const METHODS: readonly [Signal, string][] = [
  ['traces', 'trace.v1.TraceService'],
  ['metrics', 'metrics.v1.MetricsService'],
  ['logs', 'logs.v1.LogsService'],
];

/** What the listeners of gRPC have in common. */
export interface GrpcDependencies {
  readonly receiver: Receiver;
  /** Largest message, bytes. */
  readonly bodyLimit: number;
  /** In which a message comes whole, ms. */
  readonly requestTimeoutMs: number;
  readonly logger: Logger;
}

export interface GrpcListenerOptions extends GrpcDependencies {
  readonly name: string;
  readonly host: string;
  /** 0 means any free one. */
  readonly port: number;
  readonly portVariable: string;
  /** Plaintext unless given. */
  readonly credentials?: (grpc: typeof Grpc) => Grpc.ServerCredentials;
  /** Called when the listener is closed. */
  readonly closed?: () => void;
}

/**
 * OTLP/gRPC (O3): the same receiver as OTLP/HTTP.
 *
 * @throws HF_HTTP_LISTEN when it listens: the port cannot be had
 */
export function grpcListener(options: GrpcListenerOptions): Listener {
  const { name, host, port, portVariable } = options;
  let server: Grpc.Server | undefined;
  return {
    name,
    async listen() {
      const grpc = await import('@grpc/grpc-js');
      // The library would write what clients send to standard error, keys and control characters included.
      grpc.setLogVerbosity(grpc.logVerbosity.NONE);
      const credentials = options.credentials?.(grpc);
      server = serverOf(grpc, options);
      try {
        const bound = await bind(
          server,
          `${bracketed(host)}:${port}`,
          credentials ?? grpc.ServerCredentials.createInsecure(),
        );
        boundStreams(server, options.requestTimeoutMs);
        const url = urlOf(credentials ? 'https' : 'http', host, bound);
        options.logger.info({ url, surface: name }, 'grpc.listening');
        return { url };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new HostError('HF_HTTP_LISTEN', {
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

function serverOf(
  grpc: typeof Grpc,
  { receiver, bodyLimit, requestTimeoutMs, logger }: GrpcDependencies,
): Grpc.Server {
  const server = new grpc.Server({
    ...serverOptions(bodyLimit),
    interceptors: [(_method, call) => admitted(grpc, call, receiver, requestTimeoutMs)],
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
          serve(grpc, receiver, signal, call, answer).catch((err) => {
            logger.error({ err, signal }, 'grpc.failed');
            answer({ code: grpc.status.INTERNAL, details: 'The request could not be handled.' });
          }),
      },
    );
  }
  return server;
}

async function serve(
  grpc: typeof Grpc,
  receiver: Receiver,
  signal: Signal,
  call: Grpc.ServerUnaryCall<Buffer, Buffer>,
  answer: Grpc.sendUnaryData<Buffer>,
): Promise<void> {
  const body = { signal, encoding: 'protobuf', gzip: false, bytes: call.request } as const;
  const outcome = await receiver.take(body, authorizationOf(call.metadata) ?? '');
  if ('status' in outcome) return answer(statusOf(grpc, outcome));
  answer(null, exportResponse(outcome));
}

function bind(server: Grpc.Server, address: string, credentials: Grpc.ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
}
