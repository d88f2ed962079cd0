import { readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../../kernel/durable-file.ts';
import { runtimeFile } from '../../kernel/log/lock.ts';
import { whoCouldReplace } from '../../kernel/ownership.ts';

const certificate = z.object({
  file: z.string(),
  fingerprint: z.string(),
  validFrom: z.string(),
  validUntil: z.string(),
  clientAuthority: z.object({ file: z.string(), validUntil: z.string() }).exactOptional(),
  problem: z.string().exactOptional(),
});

const schema = z.object({
  pid: z.int().positive(),
  /** ISO 8601. */
  startedAt: z.string(),
  version: z.string(),
  surfaces: z.record(
    z.string(),
    z.object({
      url: z.string(),
      bound: z.string().exactOptional(),
      tls: certificate.exactOptional(),
      tokenFile: z.string().exactOptional(),
    }),
  ),
});

/** What a running instance says of itself in `<data dir>/runtime.json`. */
export type RuntimeFile = z.output<typeof schema>;

/** Written whole or not at all: a reader never sees half of it. */
export function writeRuntimeFile(dataDir: string, content: RuntimeFile): void {
  replaceFile(runtimeFile(dataDir), `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * Where others could have written the file, as in a folder that is theirs, it names no token files: it could name any file of
 * this user, and an address of theirs to send it to.
 *
 * @returns what the instance on this data folder wrote, also when it has ended without a stop; undefined without one
 */
export function readRuntimeFile(dataDir: string): RuntimeFile | undefined {
  try {
    const file = runtimeFile(dataDir);
    const isOwn = whoCouldReplace(resolve(file)) === undefined;
    const content = schema.parse(JSON.parse(readFileSync(file, 'utf8')));
    return isOwn ? content : withoutTokens(content);
  } catch {
    return undefined;
  }
}

/** A clean stop leaves none. */
export function removeRuntimeFile(dataDir: string): void {
  rmSync(runtimeFile(dataDir), { force: true });
}

function withoutTokens({ surfaces, ...rest }: RuntimeFile): RuntimeFile {
  const bare = Object.entries(surfaces).map(([name, { tokenFile: _, ...place }]) => [name, place] as const);
  return { ...rest, surfaces: Object.fromEntries(bare) };
}
