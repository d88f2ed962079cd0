import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { type ActorRef, actorRef } from '../../core/kernel/ids.ts';
import { isObject, type Json } from '../../core/kernel/json.ts';
import type { LogEvent, LogRecord } from '../../core/kernel/log/record.ts';
import {
  type TelemetryIntakeContext,
  type TelemetryIntakeEvent,
  telemetryIntake,
} from '../../machines/otlp/intake.ts';

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

/** Where the pieces of a health report come from. */
export interface Seen {
  readonly machine: Partial<TelemetryIntakeContext>;
  readonly spool: { readonly bytes: number; readonly rows: number; readonly oldest: number | undefined };
  /** Frames of the spool that cannot be read any more. */
  readonly damaged: number;
  readonly now: number;
}

/** What the health page tells of the receiver; not ok while it refuses, or keeps rows from the database. */
export function intakeHealth({ machine, spool, damaged, now }: Seen): Json {
  const { shut, away, awaySince } = machine;
  const reason =
    shut !== undefined
      ? `telemetry is refused: ${shut}`
      : away !== undefined
        ? `telemetry is kept on disk since ${new Date(awaySince ?? now).toISOString()}: ${away}`
        : undefined;
  return {
    ok: reason === undefined,
    ...(reason !== undefined && { reason }),
    ...(machine.place !== undefined && { database: machine.place }),
    spool: { rows: spool.rows, bytes: spool.bytes },
    ...(damaged > 0 && { damagedFrames: damaged }),
    lagSeconds: spool.oldest === undefined ? 0 : Math.round((now - spool.oldest) / 1000),
  };
}

/** Whether the running instance takes telemetry and gets it into the database, for `holdfast doctor stack`. */
export function intakeCheck({ running }: CheckContext): CheckResult {
  const surfaces = ['otlpHttp', 'otlpGrpc', 'otlpMtls'].flatMap((name) => running?.surfaces[name]?.url ?? []);
  const lookedAt = surfaces.length > 0 ? surfaces.join(', ') : 'the receiver of the running instance';
  const fact = running?.facts.otlp;
  if (!isObject(fact)) {
    const found = `${running ? 'it has none' : 'nothing runs that could be asked'}, so no telemetry is received`;
    const remedy = running
      ? '`holdfast status` tells why the otlp plugin is not there.'
      : 'Start it with `holdfast start`.';
    return { state: 'warn', lookedAt, found, remedy };
  }
  if (fact.ok === true && typeof fact.damagedFrames === 'number')
    return {
      state: 'warn',
      lookedAt,
      found: `at its start ${fact.damagedFrames} batches on disk were damaged: their rows are lost`,
      remedy: 'Look after the disk that holds the data folder; the next start forgets this.',
    };
  if (fact.ok === true)
    return { state: 'ok', lookedAt, found: `inserts into ${fact.database ?? 'the database'}` };
  const refuses = String(fact.reason).includes('the disk refuses');
  return {
    state: 'fail',
    lookedAt,
    found: String(fact.reason),
    remedy: refuses
      ? 'Make room on the disk that holds the data folder: telemetry is taken again by itself, and exporters send again what was refused.'
      : '`holdfast log tail` has when that began; nothing that was answered is lost, it is inserted when the database takes it.',
  };
}
