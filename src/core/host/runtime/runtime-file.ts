import { readFileSync, renameSync, rmSync } from 'node:fs';
import { z } from 'zod';
import { runtimeFile, writeAnew } from '../../kernel/log/lock.ts';

const certificate = z.object({
  file: z.string(),
  fingerprint: z.string(),
  validFrom: z.string(),
  validUntil: z.string(),
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
  const file = runtimeFile(dataDir);
  writeAnew(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

/** @returns what the instance on this data folder wrote, also when it has ended without a stop; undefined without one */
export function readRuntimeFile(dataDir: string): RuntimeFile | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(runtimeFile(dataDir), 'utf8')));
  } catch {
    return undefined;
  }
}

/** A clean stop leaves none. */
export function removeRuntimeFile(dataDir: string): void {
  rmSync(runtimeFile(dataDir), { force: true });
}
