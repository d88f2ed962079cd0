import { z } from 'zod';
import type { SurfaceOptions } from '../../core/host/http/contract.ts';
import { BODY_LIMIT } from './limits.ts';
import { memoryErrorBody } from './routes.ts';

const HOUR_MS = 3_600_000;

const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    'it must be an origin, e.g. http://store:6333',
  );

export const memoryStoreOptions = z.strictObject({
  /** 0 takes any free one. */
  port: z.int().min(0).max(65_535).default(6333),
  /** Beyond loopback only with `apiKeyFile`. */
  host: z.string().min(1).default('127.0.0.1'),
  /** File (mode 0600) with the key that clients send as `api-key`; on loopback none is asked for without it. */
  apiKeyFile: z.string().min(1).optional(),
  /** Further origins that snapshots may be fetched from; the store's own is always one. */
  recoverFrom: z.array(origin).max(20).default([]),
  /** After which a scratch instance that a killed process left is swept, milliseconds. */
  scratchTtlMs: z
    .int()
    .min(1_000)
    .default(6 * HOUR_MS),
});

/** What the live store's listener and those of scratch instances have in common. */
export function surfaceOf(name: string): Omit<SurfaceOptions, 'port'> {
  return {
    name,
    portVariable: 'HOLDFAST_MEMORY_PORT',
    bodyLimit: BODY_LIMIT,
    checkOriginOfReads: true,
    errorBody: memoryErrorBody,
    requestTimeoutMs: 600_000,
  };
}
