import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import type { Json } from '../../core/kernel/json.ts';
import type { RestoreContext, Result } from '../../machines/restore/drill-shapes.ts';
import { drillAsked, drillCancelled, drillId } from './actor.ts';
import { RestoreError } from './errors.ts';
import type { Progress } from './steps.ts';

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
    serveOperation(surface, DRILL_PATH, asked, async ({ path, snapshot }, { correlation }) => {
      const { bus, clock, exchanges } = context.services;
      const at = clock.now();
      const id = drillId(at, randomBytes(2).toString('hex'));
      const answer = exchanges.open(correlation, REPLY_MS);
      const ask = { id, path, by: 'command', at, ...(snapshot !== undefined && { snapshot }) };
      bus.publish(drillAsked, ask, { correlation });
      const { status, body } = await answer;
      const first = String((body as { id?: unknown } | undefined)?.id);
      if (status === 409) throw new RestoreError('HF_RESTORE_RUNNING', { id: first });
      return { id, correlation };
    });
    serveOperation(surface, CANCEL_PATH, given, (asked, { correlation }) => {
      context.services.bus.publish(drillCancelled, asked, { correlation });
      return {};
    });
    serveOperation(surface, STATUS_PATH, z.strictObject({}), () => {
      const { value = 'resting', context: known = {} } = drills.state() ?? {};
      const { results = [], ...rest } = known as unknown as Partial<RestoreContext>;
      const progress = drills.progress();
      return { state: nameOf(value), ...rest, ...(progress && { progress }), results } as unknown as Json;
    });
  });
}

const nameOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value as object)
        .map(([outer, inner]) => `${outer}.${inner}`)
        .join();
