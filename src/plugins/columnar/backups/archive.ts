/** The file of a backup: an archive (tar) that the engine writes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';

const BLOCK = 512;

/** The digest of a file's bytes, hexadecimal. */
export async function sha256Of(file: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, signal && { signal })) hash.update(chunk);
  return hash.digest('hex');
}

/**
 * The parts that an archive holds, by table: each part has a file `data/<database>/<table>/<part>/count.txt`. Only headers
 * are read.
 */
export async function partsIn(
  file: string,
  database: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const parts = new Map<string, string[]>();
  const handle = await open(file);
  try {
    const header = Buffer.alloc(BLOCK);
    for (let at = 0; ; ) {
      const { bytesRead } = await handle.read(header, 0, BLOCK, at);
      if (bytesRead < BLOCK || header[0] === 0) return parts;
      const name = [field(header, 345, 155), field(header, 0, 100)].filter(Boolean).join('/');
      const [, table, part] = new RegExp(`^data/${database}/([^/]+)/([^/]+)/count\\.txt$`).exec(name) ?? [];
      if (table !== undefined && part !== undefined) {
        const key = decodeURIComponent(table);
        parts.set(key, [...(parts.get(key) ?? []), part]);
      }
      at += BLOCK + Math.ceil(sizeIn(header) / BLOCK) * BLOCK;
    }
  } finally {
    await handle.close();
  }
}

function field(header: Buffer, from: number, length: number): string {
  const bytes = header.subarray(from, from + length);
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? length : end);
}

/** The size is octal, or for eight GiB and more a binary number whose first bit is set. */
function sizeIn(header: Buffer): number {
  const bytes = header.subarray(124, 136);
  return ((bytes[0] ?? 0) & 0x80) === 0
    ? Number.parseInt(field(header, 124, 12).trim() || '0', 8)
    : Number(bytes.readBigUInt64BE(4));
}
