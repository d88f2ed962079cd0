import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { HttpCallError, HttpClient, type HttpStream } from '../../core/host/http/client.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { MemoryStoreError } from './errors.ts';
import { refuseFullDisk } from './jobs/files.ts';
import { FETCH_DEADLINE_MS, FETCH_IDLE_MS, LARGEST_SNAPSHOT, SPARE_BYTES } from './limits.ts';

export interface Fetched {
  readonly bytes: number;
  /** Only when it was requested. */
  readonly sha256?: string | undefined;
}

/**
 * Writes a stream to a new file, up to a limit. The file is read once and removed, so it need not be durable.
 *
 * @param hashed whether its SHA-256 is wanted, which takes longer than to write it
 * @throws HF_MEMORY_STORE_FULL, HF_MEMORY_STORE_REQUEST it is larger than a snapshot may be
 */
export async function receive(
  from: Readable,
  file: string,
  hashed: boolean,
  signal?: AbortSignal,
): Promise<Fetched> {
  const hash = hashed ? createHash('sha256') : undefined;
  let bytes = 0;
  let checkedAt = 0;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      hash?.update(chunk);
      try {
        if (bytes > LARGEST_SNAPSHOT) {
          const reason = `a snapshot has at most ${LARGEST_SNAPSHOT} bytes here`;
          throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
        }
        // The length may not have been announced, so the free space is checked while the file arrives.
        if (bytes >= checkedAt + SPARE_BYTES / 4) {
          checkedAt = bytes;
          refuseFullDisk(dirname(file), 0, 'the snapshot');
        }
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  try {
    const into = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    await pipeline(from, measured, into, { ...(signal && { signal }) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw new MemoryStoreError('HF_MEMORY_STORE_FULL', { what: 'the snapshot' }, { cause: error });
  }
  return { bytes, sha256: hash?.digest('hex') };
}

/**
 * Fetches a snapshot from another store. Redirects are not followed, because they could lead anywhere.
 *
 * @throws HF_MEMORY_STORE_FETCH, HF_MEMORY_STORE_FULL, HF_MEMORY_STORE_REQUEST
 */
export async function fetchSnapshot(of: {
  readonly url: URL;
  readonly file: string;
  readonly clock: Clock;
  readonly hashed: boolean;
  readonly apiKey?: string | undefined;
  readonly pin?: string | undefined;
}): Promise<Fetched> {
  const { url, file, clock, hashed, apiKey, pin } = of;
  const refuse = (reason: string, cause?: unknown) =>
    new MemoryStoreError('HF_MEMORY_STORE_FETCH', { url: url.origin + url.pathname, reason }, { cause });
  const http = new HttpClient({ timeoutMs: FETCH_DEADLINE_MS, answerLimit: LARGEST_SNAPSHOT, clock });
  const call = {
    url: url.href,
    pin,
    headers: { ...(apiKey !== undefined && { 'api-key': apiKey }) },
    idleTimeoutMs: FETCH_IDLE_MS,
  };
  const read = async ({ status, headers, body }: HttpStream, signal: AbortSignal) => {
    if (status !== 200) throw refuse(`the answer was ${status}`);
    const announced = Number(headers['content-length'] ?? 0);
    refuseFullDisk(dirname(file), Number.isFinite(announced) ? announced : 0, 'the snapshot');
    const fetched = await receive(Readable.from(body, { objectMode: false }), file, hashed, signal);
    if (announced > 0 && fetched.bytes !== announced)
      throw refuse(`only ${fetched.bytes} of ${announced} bytes came`);
    return fetched;
  };
  try {
    return await http.stream(call, read);
  } catch (error) {
    throw error instanceof HttpCallError ? refuse(error.reason, error) : error;
  } finally {
    await http.close();
  }
}

const LARGEST_HEADERS = 16 * 1024;
const BOUNDARY = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * The first part of a form as a stream: the uploaded file, which may be larger than memory.
 *
 * @param contentType of the request, with its boundary
 * @throws HF_MEMORY_STORE_REQUEST it is no such form, or ends before the part does
 */
export function filePart(contentType: string, body: AsyncIterable<Buffer>): Readable {
  const match = BOUNDARY.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw malformed('it is no form with a file');
  return Readable.from(firstPart(body, Buffer.from(`--${boundary}`)), { objectMode: false });
}

async function* firstPart(body: AsyncIterable<Buffer>, opening: Buffer): AsyncGenerator<Buffer> {
  const closing = Buffer.concat([Buffer.from('\r\n'), opening]);
  let held: Buffer = Buffer.alloc(0);
  let inside = false;
  for await (const chunk of body) {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    if (!inside) {
      const end = held.indexOf(HEAD_END);
      if (end < 0 && held.length > LARGEST_HEADERS)
        throw malformed('its first part has no end of its headers');
      if (end < 0) continue;
      if (!held.subarray(0, opening.length).equals(opening))
        throw malformed('it does not begin with its boundary');
      held = held.subarray(end + HEAD_END.length);
      inside = true;
    }
    const end = held.indexOf(closing);
    if (end >= 0) {
      yield held.subarray(0, end);
      for await (const _ of body); // the rest is discarded
      return;
    }
    // The boundary may have begun at the end of this chunk.
    const certain = held.length - closing.length;
    if (certain > 0) {
      yield held.subarray(0, certain);
      held = held.subarray(certain);
    }
  }
  throw malformed('it ended before its file did');
}

function malformed(reason: string): HoldfastError {
  return new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
}
