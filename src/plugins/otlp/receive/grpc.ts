import type * as Grpc from '@grpc/grpc-js';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { bracketed, urlOf } from '../../../core/host/http/addresses.ts';
import { isLoopback } from '../../../core/host/http/admission.ts';
import {
  type CertificateFiles,
  type CertificateStatus,
  type KeyPair,
  ServedCertificate,
} from '../../../core/host/http/certificate.ts';
import type { Listener, Place } from '../../../core/host/http/contract.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Signal } from '../decode/decode.ts';
import {
  admitted,
  authorizationOf,
  boundStreams,
  MOST_CONNECTIONS,
  renewCertificate,
  serverOptions,
  statusOf,
} from './grpc-bounds.ts';
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
  /** Its certificate; plaintext unless given. */
  readonly tls?: CertificateFiles | undefined;
  /** It may listen beyond loopback in plaintext. */
  readonly insecure?: boolean | undefined;
  /** In place of `tls`. */
  readonly credentials?: (grpc: typeof Grpc) => Grpc.ServerCredentials;
  /** What is told of the certificate of `credentials`. */
  readonly status?: () => CertificateStatus | undefined;
  /** Called with what tells that `status` is another. */
  readonly onListen?: (changed: () => void) => void;
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
  let served: ServedCertificate | undefined;
  return {
    name,
    async listen({ maxConnections = MOST_CONNECTIONS, onPlace } = {}) {
      if (!isLoopback(host) && !options.tls && !options.credentials && options.insecure !== true) {
        throw new HostError('HF_HTTP_TLS_REQUIRED', { surface: name, host });
      }
      const grpc = await import('@grpc/grpc-js');
      // The library would write what clients send to standard error, keys and control characters included.
      grpc.setLogVerbosity(grpc.logVerbosity.NONE);
      let pair: KeyPair | undefined;
      let url = '';
      const place = (): Place => {
        const tls = served?.status ?? options.status?.();
        return { url, bound: `${bracketed(host)}:${new URL(url).port}`, ...(tls && { tls }) };
      };
      options.onListen?.(() => onPlace?.(place()));
      if (options.tls) {
        const use = (renewed: KeyPair) => {
          pair = renewed;
          if (server) renewCertificate(server, renewed);
        };
        const onStatus = () => onPlace?.(place());
        served = new ServedCertificate({
          surface: name,
          files: options.tls,
          logger: options.logger,
          use,
          onStatus,
        });
      }
      const credentials = options.credentials?.(grpc) ?? (pair && credentialsOf(grpc, pair));
      server = serverOf(grpc, options);
      try {
        const bound = await bind(
          server,
          `${bracketed(host)}:${port}`,
          credentials ?? grpc.ServerCredentials.createInsecure(),
        );
        boundStreams(server, options.requestTimeoutMs, Math.min(maxConnections, MOST_CONNECTIONS));
        url = urlOf(credentials ? 'https' : 'http', host, bound);
        options.logger.info({ url, surface: name }, 'grpc.listening');
        return place();
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
      served?.stop();
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

function credentialsOf(grpc: typeof Grpc, { cert, key }: KeyPair): Grpc.ServerCredentials {
  return grpc.ServerCredentials.createSsl(null, [{ cert_chain: cert, private_key: key }], false);
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
