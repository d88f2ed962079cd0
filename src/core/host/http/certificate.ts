/** The certificate of a surface: read from its files, checked, and read again when they change. */
import { X509Certificate } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { readSecretFile } from '../../kernel/secret-file.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';

/** Where a surface's certificate and its key are. */
export const certificateOptions = z.strictObject({
  /** PEM: the certificate, and behind it those of the authorities between it and the root. */
  certFile: z.string().min(1),
  /** PEM (mode 0600): its private key, without a passphrase. */
  keyFile: z.string().min(1),
  /** How often both are read, milliseconds; 10,000 unless set. */
  checkMs: z.int().min(10).max(86_400_000).exactOptional(),
});

export type CertificateFiles = z.output<typeof certificateOptions>;

/** A certificate with its key, as they were read together. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** SHA-256 of the certificate, which clients of this machine compare: `AB:CD:…`. */
  readonly fingerprint: string;
  /** Epoch milliseconds from which, and until which, it and the authorities in its file are valid. */
  readonly validFrom: number;
  readonly validUntil: number;
}

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;
const CHECK_MS = 10_000;
const LARGEST_BYTES = 1024 * 1024;

/**
 * Reads a certificate and its key, and checks that they belong together.
 *
 * @throws HF_HTTP_CERTIFICATE one of them cannot be read, is no PEM file, or does not fit the other
 */
export function readKeyPair(surface: string, { certFile, keyFile }: CertificateFiles): KeyPair {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new HostError('HF_HTTP_CERTIFICATE', { surface, reason }, { cause });
  };
  const { pem: cert, leaf, validFrom, validUntil } = readChain(certFile, refuse);
  const key = readKey(keyFile, refuse);
  try {
    createSecureContext({ cert, key, minVersion: 'TLSv1.2' });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const isOther =
      code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' || code === 'ERR_OSSL_X509_KEY_TYPE_MISMATCH';
    refuse(
      isOther
        ? `${keyFile} is the key of another certificate than ${certFile}`
        : `${keyFile} holds no usable private key`,
      error,
    );
  }
  return {
    cert,
    key,
    ...{ fingerprint: leaf.fingerprint256, validFrom, validUntil },
  };
}

/** The certificates of one file. */
export interface Chain {
  readonly pem: Buffer;
  readonly leaf: X509Certificate;
  /** Epoch milliseconds from which, and until which, all of them are valid. */
  readonly validFrom: number;
  readonly validUntil: number;
}

/**
 * Reads the certificates of a file, such as the authority that signs the certificates of clients.
 *
 * @throws HF_HTTP_CERTIFICATE it cannot be read, or is no PEM file
 */
export function readCertificates(surface: string, file: string): Chain {
  return readChain(file, (reason, cause) => {
    throw new HostError('HF_HTTP_CERTIFICATE', { surface, reason }, { cause });
  });
}

function readChain(file: string, refuse: Refuse): Chain {
  const pem = readCertificate(file, refuse);
  const chain = (pem.toString('utf8').match(PEM) ?? []).map((each) => parsed(each, file, refuse));
  const [leaf] = chain;
  if (!leaf) return refuse(`${file} holds no certificate in PEM form`);
  return {
    ...{ pem, leaf },
    validFrom: Math.max(...chain.map(({ validFromDate }) => validFromDate.getTime())),
    validUntil: Math.min(...chain.map(({ validToDate }) => validToDate.getTime())),
  };
}

type Refuse = (reason: string, cause?: unknown) => never;

function readCertificate(file: string, refuse: Refuse): Buffer {
  let descriptor: number;
  try {
    // Non-blocking, or a pipe that somebody put there would hold up the whole process until it has a writer.
    descriptor = openSync(resolve(file), constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return refuse(`${file}: ${(error as NodeJS.ErrnoException).code ?? 'it cannot be read'}`, error);
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) refuse(`${file} is not a regular file`);
    if (stat.size > LARGEST_BYTES) refuse(`${file} is larger than ${LARGEST_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function readKey(file: string, refuse: Refuse): Buffer {
  try {
    return readSecretFile(resolve(file));
  } catch (error) {
    if (!isCoded(error)) throw error;
    return refuse(error.what.replace(/\.$/, ''), error);
  }
}

function parsed(pem: string, file: string, refuse: Refuse): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    return refuse(`${file} holds what is no certificate`, error);
  }
}

/** What a surface serves now, for health pages and `doctor`. A type, because only types count as JSON. */
export type CertificateStatus = {
  /** The file that it was read from. */
  readonly file: string;
  readonly fingerprint: string;
  /** ISO 8601. */
  readonly validFrom: string;
  readonly validUntil: string;
  /** The authority that signs the certificates of clients, where it demands them. */
  readonly clientAuthority?: { readonly file: string; readonly validUntil: string };
  /** Why the files as they are now are not used; the pair that was read before stays in use. */
  readonly problem?: string;
};

/** What is told of a pair that was read from a file. @param problem why the files as they are now are not used */
export function certificateStatus(
  { fingerprint, validFrom, validUntil }: Pick<KeyPair, 'fingerprint' | 'validFrom' | 'validUntil'>,
  certFile: string,
  problem?: string,
): CertificateStatus {
  return {
    file: resolve(certFile),
    fingerprint,
    validFrom: new Date(validFrom).toISOString(),
    validUntil: new Date(validUntil).toISOString(),
    ...(problem !== undefined && { problem }),
  };
}

export interface ServedCertificateOptions {
  readonly surface: string;
  readonly files: CertificateFiles;
  readonly logger: Logger;
  /** Called with the first pair, and with each that takes its place. */
  readonly use: (pair: KeyPair) => void;
  /** Called when `status` is another. */
  readonly onStatus?: () => void;
}

/**
 * The key pair that a surface serves. Renewed files are used for new connections, and open ones go on. A renewal that is half
 * written, or broken, leaves the pair that was good; it is logged once, and `status` says it until the files can be used again.
 */
export class ServedCertificate {
  readonly #options: ServedCertificateOptions;
  #pair: KeyPair;
  #problem: string | undefined;
  readonly #timer: NodeJS.Timeout;

  /**
   * Begins to follow the files, until `stop`.
   *
   * @throws HF_HTTP_CERTIFICATE they cannot be used now
   */
  constructor(options: ServedCertificateOptions) {
    this.#options = options;
    this.#pair = readKeyPair(options.surface, options.files);
    options.use(this.#pair);
    this.#timer = setInterval(() => this.check(), options.files.checkMs ?? CHECK_MS).unref();
  }

  get status(): CertificateStatus {
    return certificateStatus(this.#pair, this.#options.files.certFile, this.#problem);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads the files now. */
  check(): void {
    const { surface, files, logger, use, onStatus } = this.#options;
    let pair: KeyPair;
    try {
      pair = readKeyPair(surface, files);
    } catch (error) {
      if (!isCoded(error)) throw error;
      if (this.#problem === error.what) return;
      this.#problem = error.what;
      logger.warn({ err: error, surface }, 'http.certificate_unusable');
      onStatus?.();
      return;
    }
    const isSame = pair.cert.equals(this.#pair.cert) && pair.key.equals(this.#pair.key);
    if (isSame && this.#problem === undefined) return;
    this.#problem = undefined;
    this.#pair = pair;
    if (!isSame) use(pair);
    onStatus?.();
    if (isSame) return;
    const until = new Date(pair.validUntil).toISOString();
    logger.info({ surface, fingerprint: pair.fingerprint, until }, 'http.certificate_renewed');
  }
}
