import { execFileSync } from 'node:child_process';
import { chmodSync, renameSync } from 'node:fs';
import { join } from 'node:path';

export interface TestCertificate {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface CertificateWish {
  /** The names in it; `localhost` unless set. */
  readonly name?: string;
  /** Until it ends; 30 unless set. */
  readonly days?: number;
  /** Beginning of the files' names. */
  readonly as?: string;
}

/**
 * Makes a certificate that is signed by itself. The files of an earlier one of the same name are replaced, as a renewal
 * does it.
 */
export function makeCertificate(dir: string, wish: CertificateWish = {}): TestCertificate {
  const { name = 'localhost', days = 30, as = 'server' } = wish;
  const [certFile, keyFile] = [join(dir, `${as}.crt`), join(dir, `${as}.key`)];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-sha256'],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-days', String(days)],
      ...['-keyout', `${keyFile}.new`, '-out', `${certFile}.new`],
    ],
    { stdio: 'pipe' },
  );
  chmodSync(`${keyFile}.new`, 0o600);
  renameSync(`${keyFile}.new`, keyFile);
  renameSync(`${certFile}.new`, certFile);
  return { certFile, keyFile };
}
