import type { z } from 'zod';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { HttpSurface } from '../http/contract.ts';

/** The request of an operation. */
export interface Operation {
  readonly correlation: string;
  /** Aborted when the caller has closed the connection. */
  readonly signal: AbortSignal;
}

/**
 * Answers one question of a command. What `run` throws with a code reaches the command as the same error, with its details.
 *
 * @param schema of the question; another one is refused with HF_HTTP_REQUEST_INVALID
 * @param run its result is the answer, JSON
 * @example context.control((surface) => serveOperation(surface, '/lamp/on', z.strictObject({}), () => lamp.on()))
 */
export function serveOperation<T>(
  surface: HttpSurface,
  path: string,
  schema: z.ZodType<T>,
  run: (body: T, operation: Operation) => unknown,
): void {
  surface.post(path, async ({ body, id }, reply) => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort(new Error('nobody waits for it any more')));
    try {
      const { data, error } = schema.safeParse(body ?? {});
      if (error) throw new HostError('HF_HTTP_REQUEST_INVALID', { reason: reasonOf(error) });
      return await run(data as T, { correlation: id, signal: gone.signal });
    } catch (error) {
      if (gone.signal.aborted) return {}; // the caller is gone
      if (!isCoded(error)) throw error;
      return reply.code(error.status).send(error.toData());
    }
  });
}

function reasonOf({ issues }: z.ZodError): string {
  const { path = [], message = '' } = issues[0] ?? {};
  return path.length === 0 ? message : `${path.join('.')}: ${message}`;
}
