/** What a listener of gRPC demands of its callers, found out by a call without any credential (`holdfast doctor security`). */
import { once } from 'node:events';
import { connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { TLSSocket } from 'node:tls';
import type { Place } from '../../../core/host/http/contract.ts';

const PATH = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
/** A message of no bytes: one byte that says it is not compressed, and its length. */
const EMPTY_MESSAGE = Buffer.alloc(5);
const TIMEOUT_MS = 5_000;
const UNAUTHENTICATED = '16';
const OK = '0';

/**
 * Exports an empty message without a key and without a client certificate.
 *
 * @throws Error whose message says why it is not known what it demands
 */
export async function grpcDemand(
  { url, tls }: Place,
  signal: AbortSignal,
): Promise<'key' | 'certificate' | 'none'> {
  // Its certificate is compared with the one that runtime.json tells, whatever name it is for.
  const session = connect(url, { rejectUnauthorized: false, checkServerIdentity: () => undefined });
  session.setTimeout(TIMEOUT_MS, () => session.destroy(new Error('it did not answer within 5 s')));
  const abort = () => session.destroy(new Error('the check was ended'));
  signal.addEventListener('abort', abort, { once: true });
  const failed = once(session, 'error').then(([error]) => {
    throw error;
  });
  failed.catch(() => {});
  try {
    await Promise.race([once(session, 'connect'), failed]);
    const { socket } = session;
    if (tls && socket instanceof TLSSocket && socket.getPeerCertificate().fingerprint256 !== tls.fingerprint)
      throw new Error('it serves another certificate than runtime.json says');
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const status = Promise.withResolvers<unknown>();
    const look = (headers: IncomingHttpHeaders) => {
      if (headers['grpc-status'] !== undefined) status.resolve(headers['grpc-status']);
    };
    stream.on('response', look).on('trailers', look);
    stream.on('error', status.reject);
    stream.on('close', () => status.reject(new Error('it closed the call without an answer')));
    stream.resume().end(EMPTY_MESSAGE);
    const code = await Promise.race([status.promise, failed]);
    if (code === UNAUTHENTICATED) return 'key';
    if (code === OK) return 'none';
    throw new Error(`it answered with status ${String(code)} of gRPC`);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code.includes('CERTIFICATE_REQUIRED')) return 'certificate';
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    session.destroy();
  }
}
