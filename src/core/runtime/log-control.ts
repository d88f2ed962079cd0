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

/** What commands ask of the log of a running instance, on its control socket. */
export function logControl(
  surface: HttpSurface,
  { log, dataDir, clock }: Pick<RuntimeServices, 'log' | 'dataDir' | 'clock'>,
): void {
  surface.post('/log/prune', async ({ body }) => {
    const { data, error } = pruneBody.safeParse(body);
    if (!data) {
      const issue = error.issues[0];
      const reason = `${issue?.path.join('.')}: ${issue?.message}`;
      throw new HoldfastError('HF_LOG_ARCHIVE', { reason });
    }
    const { folder, ...request } = data;
    return pruneRunning(log, dataDir, request, folder, clock.now());
  });
}
