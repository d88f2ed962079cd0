import { z } from 'zod';
import { HoldfastError } from '../errors/index.ts';
import type { HttpSurface } from '../http/index.ts';
import type { RuntimeServices } from '../plugin/index.ts';
import { pruneRunning } from '../retention/index.ts';

const pruneBody = z.strictObject({
  olderThanMs: z.int().nonnegative().optional(),
  keepBytes: z.int().nonnegative().optional(),
  /** Absolute path. */
  folder: z.string().startsWith('/').max(4_096),
});

const shredBody = z.strictObject({ keys: z.array(z.string().min(1).max(128)).max(100_000) });

/** What commands ask of the log of a running instance, on its control socket. */
export function logControl(
  surface: HttpSurface,
  { log, dataDir, clock }: Pick<RuntimeServices, 'log' | 'dataDir' | 'clock'>,
): void {
  surface.post('/log/prune', async ({ body }) => {
    const { folder, ...request } = read(pruneBody, body);
    return pruneRunning(log, dataDir, request, folder, clock.now());
  });

  surface.post('/log/shred', async ({ body }) => {
    const { keys } = read(shredBody, body);
    await log.shred(keys);
    return { keys };
  });
}

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const { data, error } = schema.safeParse(body);
  if (data !== undefined) return data;
  const issue = error?.issues[0];
  throw new HoldfastError('HF_HTTP_REQUEST_INVALID', {
    reason: `${issue?.path.join('.')}: ${issue?.message}`,
  });
}
