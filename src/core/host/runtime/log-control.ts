import { z } from 'zod';
import type { HttpSurface } from '../http/contract.ts';
import { serveOperation } from '../operations/serve.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import { pruneRunning } from '../retention/prune-running.ts';

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
  serveOperation(surface, '/log/prune', pruneBody, ({ folder, ...request }) =>
    pruneRunning(log, dataDir, request, folder, clock.now()),
  );
  serveOperation(surface, '/log/shred', shredBody, async ({ keys }) => {
    await log.shred(keys);
    return { keys };
  });
}
