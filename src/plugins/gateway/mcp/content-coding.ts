import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { GatewayError } from '../errors.ts';

type Decompress = (
  body: Buffer,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, decoded: Buffer) => void,
) => void;

/** Codings of request bodies that are taken (RFC 9110, 8.4.1); one at a time. */
const CODINGS: Readonly<Record<string, Decompress>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  deflate: inflate,
  br: brotliDecompress,
};

/** What the answer to another coding names. */
export const ACCEPTED_CODINGS = 'gzip, deflate, br';

/** @param header `Content-Encoding` of a request @returns its coding in lower case; undefined for a body as it is */
export function codingOf(header: string | undefined): string | undefined {
  const coding = header?.trim().toLowerCase();
  return coding === '' || coding === 'identity' ? undefined : coding;
}

/** Whether a body with this coding can be read. */
export const isAccepted = (coding: string): boolean => Object.hasOwn(CODINGS, coding);

/**
 * Decompresses the body of a request. One with a coding that is not accepted is given back as it is: whoever reads the
 * request refuses it by its header.
 *
 * @param limit bytes of the decompressed body
 * @param done gets it, or HF_HTTP_BODY_TOO_LARGE or HF_GATEWAY_BODY_CODING
 */
export function decodeBody(
  header: string | undefined,
  body: Buffer,
  limit: number,
  done: (error: Error | null, decoded?: Buffer) => void,
): void {
  const coding = codingOf(header);
  const decompress = coding !== undefined && isAccepted(coding) ? CODINGS[coding] : undefined;
  if (coding === undefined || !decompress) {
    done(null, body);
    return;
  }
  decompress(body, { maxOutputLength: limit }, (error, decoded) => {
    if (!error) {
      done(null, decoded);
      return;
    }
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    done(
      isLarge
        ? new HostError('HF_HTTP_BODY_TOO_LARGE', { limit })
        : new GatewayError('HF_GATEWAY_BODY_CODING', { coding }),
    );
  });
}
