import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { consoleActions, consolePages } from '../../core/contracts/console.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { StateValue } from '../../core/kernel/log/record.ts';
import type { DrillContext, Result } from '../../machines/restore/drill-shapes.ts';
import { DRILL_KEY, DRILL_PATHS, drillActor, drillCancelled, drillId, drillRequested } from './actor.ts';
import { drillsPage } from './console-page.ts';
import type { Drills } from './drills.ts';
import { RestoreError } from './errors.ts';
import type { Progress } from './steps.ts';

/** The paths that `holdfast restore …` posts to. */
export const DRILL_PATH = '/restore/drill';
export const CANCEL_PATH = '/restore/cancel';
export const STATUS_PATH = '/restore/status';

const REPLY_MS = 10_000;
const drillFields = z.strictObject({
  path: z.enum(DRILL_PATHS),
  snapshot: z.string().min(1).max(200).optional(),
});
const cancelFields = z.strictObject({ reason: z.string().min(1).max(200) });
const replyBody = z.object({ id: z.string() });

/** The answer of `/restore/status`. */
export interface DrillStatus extends Partial<Omit<DrillContext, 'results'>> {
  /** State of the machine, e.g. `verifying`, `resting.completed`. */
  readonly state: string;
  readonly progress?: Progress;
  readonly results: readonly Result[];
}

/** Serves the operations of the commands on the control socket. */
export function registerControl(
  context: PluginContext<{ readonly services: Services; readonly drills: Drills }>,
): void {
  context.contribute(consolePages, drillsPage);
  context.contribute(consoleActions, {
    name: 'restore-drill',
    title: 'Start a restore drill',
    confirm:
      'A copy of the newest backup is restored beside the store and compared; the store itself is not touched.',
    fields: [{ name: 'path', title: 'Drill', kind: 'choice', choices: DRILL_PATHS, required: true }],
    operation: DRILL_PATH,
    body: (fields) => fields,
  });
  context.control((surface, { services, drills }) => {
    serveOperation(surface, DRILL_PATH, drillFields, async ({ path, snapshot }, { correlation }) => {
      const { bus, clock, pendingReplies } = services;
      const at = clock.now();
      const id = drillId(at, randomBytes(2).toString('hex'));
      const answer = pendingReplies.open(correlation, REPLY_MS);
      const drill = { id, path, by: 'command', at, ...(snapshot !== undefined && { snapshot }) };
      bus.publish(drillRequested, drill, { correlation });
      const { status, body } = await answer;
      if (status === 409) throw new RestoreError('HF_RESTORE_RUNNING', replyBody.parse(body));
      return { id, correlation };
    });
    serveOperation(surface, CANCEL_PATH, cancelFields, (fields, { correlation }) => {
      services.bus.publish(drillCancelled, fields, { correlation });
      return {};
    });
    serveOperation(surface, STATUS_PATH, z.strictObject({}), (): DrillStatus => {
      const { value = 'resting', context: drill } = services.actors.get(drillActor, DRILL_KEY) ?? {};
      const { now } = drills.progress;
      return { state: stateText(value), results: [], ...drill, ...(now && { progress: now }) };
    });
  });
}

/** `resting.completed` of `{ resting: 'completed' }`. */
function stateText(value: StateValue): string {
  if (typeof value === 'string') return value;
  return Object.entries(value)
    .map(([outer, inner]) => `${outer}.${stateText(inner)}`)
    .join();
}
