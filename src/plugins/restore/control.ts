import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { ActorState } from '../../core/actors/index.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import type { Json } from '../../core/json.ts';
import type { PluginContext } from '../../core/plugin/index.ts';
import type { RestoreContext, Result } from '../../machines/restore/shapes.ts';
import type { Progress } from './progress.ts';
import { drillAsked, drillCancelled, drillId } from './topics.ts';

export const DRILL_PATH = '/restore/drill';
export const CANCEL_PATH = '/restore/cancel';
export const STATUS_PATH = '/restore/status';

const REPLY_MS = 10_000;
const asked = z.strictObject({
  path: z.enum(['a', 'b']),
  snapshot: z.string().min(1).max(200).optional(),
});
const given = z.strictObject({ reason: z.string().min(1).max(200) });

/** What `POST /restore/status` answers. */
export interface DrillStatus extends Partial<Omit<RestoreContext, 'results'>> {
  /** Of the machine, e.g. `verifying`, `resting.completed`. */
  readonly state: string;
  readonly progress?: Progress;
  readonly results: readonly Result[];
}

/** What commands post to, over the control socket. */
export function registerControl(
  context: PluginContext,
  drills: { readonly state: () => ActorState | undefined; readonly progress: () => Progress | undefined },
): void {
  context.control((surface) => {
    surface.post(DRILL_PATH, async (request, reply) => {
      const { path, snapshot } = valid(asked, request.body);
      const { bus, clock, exchanges } = context.services;
      const at = clock.now();
      const id = drillId(at, randomBytes(2).toString('hex'));
      const answer = exchanges.open(request.id, REPLY_MS);
      const ask = { id, path, by: 'command', at, ...(snapshot !== undefined && { snapshot }) };
      bus.publish(drillAsked, ask, { correlation: request.id });
      const { status, body } = await answer;
      const first = String((body as { id?: unknown } | undefined)?.id);
      if (status === 409) throw new HoldfastError('HF_RESTORE_RUNNING', { id: first });
      return reply.code(202).send({ id, correlation: request.id });
    });
    surface.post(CANCEL_PATH, async (request, reply) => {
      context.services.bus.publish(drillCancelled, valid(given, request.body), { correlation: request.id });
      return reply.code(202).send({});
    });
    surface.post(STATUS_PATH, async () => {
      const { value = 'resting', context: known = {} } = drills.state() ?? {};
      const { results = [], ...rest } = known as unknown as Partial<RestoreContext>;
      const progress = drills.progress();
      return { state: nameOf(value), ...rest, ...(progress && { progress }), results } as unknown as Json;
    });
  });
}

function valid<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  throw new HoldfastError('HF_HTTP_BODY_INVALID', { reason: z.prettifyError(parsed.error) });
}

const nameOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value as object)
        .map(([outer, inner]) => `${outer}.${inner}`)
        .join();
