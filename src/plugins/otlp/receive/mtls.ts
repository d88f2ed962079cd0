import { resolve } from 'node:path';
import type * as Grpc from '@grpc/grpc-js';
import {
  type CertificateStatus,
  type Chain,
  certificateStatus,
  type KeyPair,
  readCertificates,
  readKeyPair,
} from '../../../core/host/http/certificate.ts';
import type { Listener } from '../../../core/host/http/contract.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
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
  readonly pair: KeyPair;
  readonly authority: Chain;
}

const NAME = 'otlpMtls';

/**
 * OTLP/gRPC for producers from outside (O5): a client certificate is demanded besides the key.
 *
 * @throws HF_OTLP_MTLS when it listens: a file is not named, cannot be read, or does not fit the others
 */
export function mtlsListener(dependencies: GrpcDependencies, options: MtlsOptions): Listener {
  const { host, port } = options;
  const certificates = new Certificates(options, dependencies.logger);
  const listener = grpcListener({
    ...dependencies,
    name: NAME,
    host,
    port,
    portVariable: 'HOLDFAST_OTLP_MTLS_PORT',
    credentials: (grpc) =>
      grpc.experimental.createCertificateProviderServerCredentials(certificates, certificates, true),
    status: () => certificates.status,
    onListen: (changed) => certificates.onStatus(changed),
    closed: () => certificates.stop(),
  });
  return {
    ...listener,
    async listen(of) {
      certificates.start();
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
  readonly #options: MtlsOptions;
  readonly #logger: Logger;
  readonly #identities = new Set<Identity>();
  readonly #authorities = new Set<Authority>();
  #files: Files | undefined;
  #problem: string | undefined;
  #changed: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MtlsOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
  }

  /** What is served now; undefined before `start`. */
  get status(): CertificateStatus | undefined {
    if (!this.#files) return undefined;
    const { pair, authority } = this.#files;
    const { certFile = '', clientCaFile = '' } = this.#options;
    const validUntil = new Date(authority.validUntil).toISOString();
    return {
      ...certificateStatus(pair, certFile, this.#problem),
      clientAuthority: { file: resolve(clientCaFile), validUntil },
    };
  }

  onStatus(changed: () => void): void {
    this.#changed = changed;
  }

  /** @throws HF_OTLP_MTLS */
  start(): void {
    this.#files = readFiles(this.#options);
    this.#timer = setInterval(() => this.#reload(), this.#options.checkMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  addIdentityCertificateListener(listener: Identity): void {
    this.#identities.add(listener);
    process.nextTick(() => listener(this.#files ? updateOf(this.#files) : null));
  }

  removeIdentityCertificateListener(listener: Identity): void {
    this.#identities.delete(listener);
  }

  addCaCertificateListener(listener: Authority): void {
    this.#authorities.add(listener);
    process.nextTick(() => listener(this.#files ? updateOf(this.#files) : null));
  }

  removeCaCertificateListener(listener: Authority): void {
    this.#authorities.delete(listener);
  }

  #reload(): void {
    let files: Files;
    try {
      files = readFiles(this.#options);
    } catch (error) {
      if (!isCoded(error)) throw error;
      if (this.#problem === error.what) return;
      this.#problem = error.what;
      this.#logger.warn({ err: error, surface: NAME }, 'otlp.certificates_unusable');
      this.#changed?.();
      return;
    }
    const isSame = same(files, this.#files);
    if (isSame && this.#problem === undefined) return;
    this.#problem = undefined;
    this.#files = files;
    if (!isSame) {
      const update = updateOf(files);
      for (const listener of this.#identities) listener(update);
      for (const listener of this.#authorities) listener(update);
      this.#logger.info({ surface: NAME }, 'otlp.certificates_renewed');
    }
    this.#changed?.();
  }
}

/** As the library takes them. */
const updateOf = ({ pair, authority }: Files) => ({
  certificate: pair.cert,
  privateKey: pair.key,
  caCertificate: authority.pem,
});

function readFiles({ certFile, keyFile, clientCaFile }: MtlsOptions): Files {
  const named = (option: string, file: string | undefined): string => {
    if (file === undefined) throw new OtlpError('HF_OTLP_MTLS', { reason: `mtls.${option} is not set` });
    const reason = whoCouldReplace(resolve(file));
    if (reason === undefined) return file;
    throw new OtlpError('HF_OTLP_MTLS', { reason: `${file} (mtls.${option}): ${reason}` });
  };
  const files = { certFile: named('certFile', certFile), keyFile: named('keyFile', keyFile) };
  const caFile = named('clientCaFile', clientCaFile);
  try {
    return { pair: readKeyPair(NAME, files), authority: readCertificates(NAME, caFile) };
  } catch (error) {
    if (!isCoded(error, 'HF_HTTP_CERTIFICATE')) throw error;
    throw new OtlpError('HF_OTLP_MTLS', { reason: String(error.details.reason) }, { cause: error });
  }
}

function same(files: Files, other: Files | undefined): boolean {
  return (
    other !== undefined &&
    files.pair.cert.equals(other.pair.cert) &&
    files.pair.key.equals(other.pair.key) &&
    files.authority.pem.equals(other.authority.pem)
  );
}
