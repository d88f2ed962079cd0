import { Readable } from 'node:stream';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';

const LARGEST_HEADERS = 16 * 1024;
const BOUNDARY = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * The first part of a form, as a stream: the file of an upload, which may be larger than the memory.
 *
 * @param contentType of the request, with its boundary
 * @throws HF_MEMORY_REQUEST it is no such form, or ends before the part does
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
      for await (const _ of body); // what follows is not read
      return;
    }
    // The boundary may have begun at the end of what has come.
    const sure = held.length - closing.length;
    if (sure > 0) {
      yield held.subarray(0, sure);
      held = held.subarray(sure);
    }
  }
  throw malformed('it ended before its file did');
}

function malformed(reason: string): HoldfastError {
  return new HoldfastError('HF_MEMORY_REQUEST', { reason });
}
