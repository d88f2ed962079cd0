import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { type ActorRef, actorRef } from '../../core/kernel/ids.ts';
import type { LogEvent, LogRecord } from '../../core/kernel/log/record.ts';
import { type TelemetryIntakeEvent, telemetryIntake } from '../../machines/otlp/intake.ts';

const INTAKE_TYPE = 'otlp.intake';
const KEY = 'receiver';
/** The actor by which the log tells of the receiver. */
export const INTAKE_ACTOR: ActorRef = actorRef(INTAKE_TYPE, KEY);

const database = z.object({
  place: z.string(),
  reason: z.string().optional(),
  /** ms since the epoch */
  since: z.int(),
});
const pressure = z.object({ pressed: z.boolean(), refused: z.int() });
const spool = z.object({ reason: z.string().optional() });

export const databaseChanged: Topic<z.infer<typeof database>> = defineTopic(
  'otlp.database_changed',
  database,
  'The columnar database takes telemetry, or does not for a reason.',
);
export const pressureChanged: Topic<z.infer<typeof pressure>> = defineTopic(
  'otlp.pressure_changed',
  pressure,
  'Requests are refused for want of memory, or no more.',
);
export const spoolChanged: Topic<z.infer<typeof spool>> = defineTopic(
  'otlp.spool_changed',
  spool,
  'Nothing can be kept on disk any more for a reason, or something again.',
);

const to = (event: TelemetryIntakeEvent) => [{ key: KEY, event: event as unknown as LogEvent }];

export function registerIntakeActor(context: PluginContext): void {
  context.actor(
    defineActor({
      type: INTAKE_TYPE,
      machine: telemetryIntake,
      version: 2,
      // Version 1 said of no alert that it lasts; states and context are the same.
      migrate: (state, fromVersion) => (fromVersion === 1 ? state : undefined),
      describe,
    }),
  );
  context.route(
    defineRoute(databaseChanged, INTAKE_TYPE, ({ payload: { place, reason, since } }) =>
      to(
        reason === undefined
          ? { type: 'DATABASE_THERE', place }
          : { type: 'DATABASE_AWAY', place, reason, since },
      ),
    ),
  );
  context.route(
    defineRoute(pressureChanged, INTAKE_TYPE, ({ payload: { pressed, refused } }) =>
      to(pressed ? { type: 'PRESSED' } : { type: 'RELIEVED', refused }),
    ),
  );
  context.route(
    defineRoute(spoolChanged, INTAKE_TYPE, ({ payload: { reason } }) =>
      to(reason === undefined ? { type: 'SPOOL_FREE' } : { type: 'SPOOL_STUCK', reason }),
    ),
  );
}

function describe({ event }: LogRecord): string | undefined {
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return '';
    case 'DATABASE_THERE':
      return `inserts into ${event.place}`;
    case 'DATABASE_AWAY':
      return `keeps telemetry on disk: ${event.reason}`;
    case 'PRESSED':
      return 'refuses what it has no memory for';
    case 'RELIEVED':
      return `takes everything again, ${event.refused} requests were refused`;
    case 'SPOOL_STUCK':
      return `refuses everything: ${event.reason}`;
    case 'SPOOL_FREE':
      return 'takes telemetry again';
    default:
      return undefined;
  }
}
