import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type * as Grpc from '@grpc/grpc-js';
import type { Listener } from '../../../core/host/http/contract.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { whoCouldReplace } from '../../../core/kernel/ownership.ts';
import { OtlpError } from '../errors.ts';
import { type GrpcDependencies, grpcListener } from './grpc.ts';

export interface MtlsOptions {
  readonly host: string;
  readonly port: number;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly clientCaFile?: string | undefined;
  /** How often the files are read, ms. */
  readonly checkMs: number;
}

interface Files {
  readonly certificate: Buffer;
  readonly privateKey: Buffer;
  readonly caCertificate: Buffer;
}

/**
 * OTLP/gRPC for producers from outside (O5): a client certificate is demanded besides the key.
 *
 * @throws HF_OTLP_MTLS when it listens: a file is not named, cannot be read, or does not fit the others
 */
export function mtlsListener(dependencies: GrpcDependencies, options: MtlsOptions): Listener {
  const { host, port, checkMs } = options;
  const certificates = new Certificates(() => readFiles(options), checkMs, dependencies.logger);
  const listener = grpcListener({
    ...dependencies,
    name: 'otlpMtls',
    host,
    port,
    portVariable: 'HOLDFAST_OTLP_MTLS_PORT',
    credentials: (grpc) =>
      grpc.experimental.createCertificateProviderServerCredentials(certificates, certificates, true),
    closed: () => certificates.stop(),
  });
  return {
    ...listener,
    async listen(of) {
      await certificates.start();
      return listener.listen(of);
    },
  };
}

type Identity = Grpc.experimental.IdentityCertificateUpdateListener;
type Authority = Grpc.experimental.CaCertificateUpdateListener;

/**
 * The certificates as they are on disk now. A renewal that is half written, or whose key does not fit, is ignored
 * until it is complete; new connections use the last good files.
 */
class Certificates implements Grpc.experimental.CertificateProvider {
  readonly #read: () => Promise<Files>;
  readonly #checkMs: number;
  readonly #logger: Logger;
  readonly #identities = new Set<Identity>();
  readonly #authorities = new Set<Authority>();
  #files: Files | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(read: () => Promise<Files>, checkMs: number, logger: Logger) {
    this.#read = read;
    this.#checkMs = checkMs;
    this.#logger = logger;
  }

  /** @throws HF_OTLP_MTLS */
  async start(): Promise<void> {
    this.#files = await this.#read();
    this.#timer = setInterval(() => void this.#reload(), this.#checkMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  addIdentityCertificateListener(listener: Identity): void {
    this.#identities.add(listener);
    process.nextTick(() => listener(this.#files ?? null));
  }

  removeIdentityCertificateListener(listener: Identity): void {
    this.#identities.delete(listener);
  }

  addCaCertificateListener(listener: Authority): void {
    this.#authorities.add(listener);
    process.nextTick(() => listener(this.#files ?? null));
  }

  removeCaCertificateListener(listener: Authority): void {
    this.#authorities.delete(listener);
  }

  async #reload(): Promise<void> {
    try {
      const files = await this.#read();
      if (same(files, this.#files)) return;
      this.#files = files;
      for (const listener of this.#identities) listener(files);
      for (const listener of this.#authorities) listener(files);
      this.#logger.info({ surface: 'otlpMtls' }, 'otlp.certificates_renewed');
    } catch (error) {
      this.#logger.warn({ err: error, surface: 'otlpMtls' }, 'otlp.certificates_unusable');
    }
  }
}

async function readFiles({ certFile, keyFile, clientCaFile }: MtlsOptions): Promise<Files> {
  const read = async (option: string, file: string | undefined): Promise<Buffer> => {
    if (file === undefined) throw new OtlpError('HF_OTLP_MTLS', { reason: `mtls.${option} is not set` });
    const reason = whoCouldReplace(resolve(file));
    if (reason !== undefined)
      throw new OtlpError('HF_OTLP_MTLS', { reason: `${file} (mtls.${option}): ${reason}` });
    try {
      return await readFile(file);
    } catch (error) {
      const { code = 'unreadable' } = error as NodeJS.ErrnoException;
      throw new OtlpError('HF_OTLP_MTLS', { reason: `${file} (mtls.${option}): ${code}` });
    }
  };
  const files = {
    certificate: await read('certFile', certFile),
    privateKey: await read('keyFile', keyFile),
    caCertificate: await read('clientCaFile', clientCaFile),
  };
  try {
    createSecureContext({ cert: files.certificate, key: files.privateKey, ca: files.caCertificate });
  } catch {
    throw new OtlpError('HF_OTLP_MTLS', {
      reason: 'the certificate, its key and the client authority are no PEM files that fit each other',
    });
  }
  return files;
}

function same(files: Files, other: Files | undefined): boolean {
  return (
    other !== undefined &&
    files.certificate.equals(other.certificate) &&
    files.privateKey.equals(other.privateKey) &&
    files.caCertificate.equals(other.caCertificate)
  );
}
