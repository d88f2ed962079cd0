import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const BINARY = 2;
const CLOSE = 8;

/** The server's side of a WebSocket: whole binary messages, no extensions. Enough for the channels of a port-forward. */
export interface ServerSocket {
  send(message: Buffer): void;
  close(): void;
}

export function acceptWebSocket(
  request: IncomingMessage,
  stream: Duplex,
  protocol: string,
  on: { readonly message: (message: Buffer) => void; readonly close: () => void },
): ServerSocket {
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}${MAGIC}`)
    .digest('base64');
  stream.write(
    [
      'HTTP/1.1 101 Switching Protocols',
      'Upgrade: websocket',
      'Connection: Upgrade',
      `Sec-WebSocket-Accept: ${accept}`,
      `Sec-WebSocket-Protocol: ${protocol}`,
      '\r\n',
    ].join('\r\n'),
  );
  let pending = Buffer.alloc(0);
  let parts: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    for (let frame = readFrame(pending); frame; frame = readFrame(pending)) {
      pending = pending.subarray(frame.size);
      if (frame.opcode === CLOSE) stream.end(makeFrame(CLOSE, Buffer.alloc(0)));
      if (frame.opcode > BINARY) continue;
      parts.push(frame.payload);
      if (!frame.final) continue;
      on.message(Buffer.concat(parts));
      parts = [];
    }
  });
  stream.on('error', () => stream.destroy());
  stream.on('close', on.close);
  return {
    send: (message) => void (stream.writable && stream.write(makeFrame(BINARY, message))),
    close: () => void (stream.writable && stream.end(makeFrame(CLOSE, Buffer.alloc(0)))),
  };
}

/** A client masks what it sends. @returns undefined while the frame is not whole */
function readFrame(bytes: Buffer) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1]! & 0x7f;
  const header = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < header) return undefined;
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const size = header + 4 + length;
  if (bytes.length < size) return undefined;
  const mask = bytes.subarray(header, header + 4);
  const payload = Buffer.from(bytes.subarray(header + 4, size));
  for (let index = 0; index < length; index += 1) payload[index]! ^= mask[index % 4]!;
  return { final: (bytes[0]! & 0x80) !== 0, opcode: bytes[0]! & 0x0f, payload, size };
}

function makeFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const header = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  header[0] = 0x80 | opcode;
  if (length < 126) header[1] = length;
  else if (length < 65_536) {
    header[1] = 126;
    header.writeUInt16BE(length, 2);
  } else {
    header[1] = 127;
    header.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([header, payload]);
}
