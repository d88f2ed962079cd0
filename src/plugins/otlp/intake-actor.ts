/** The receiver as an actor of the log: its topics, and its state for health page and doctor. */

import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { counted, duration } from '../../core/host/terminal.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { isObject, type Json } from '../../core/kernel/json.ts';
import { type IntakeContext, type IntakeEvent, intake } from '../../machines/otlp/intake.ts';
import { describeIntakeRecord } from './words.ts';

/** The key of the only intake actor. */
export const RECEIVER = 'receiver';

export const intakeActor = defineActor({
  type: 'otlp.intake',
  machine: intake,
  version: 1,
  describe: describeIntakeRecord,
});

export const databaseChanged = defineTopic(
  'otlp.database_changed',
  z.object({
    place: z.string(),
    /** Why it takes nothing. */
    reason: z.string().optional(),
    /** Epoch milliseconds. */
    since: z.int(),
  }),
  'The columnar database takes telemetry, or does not, for a reason.',
);

export const loadChanged = defineTopic(
  'otlp.load_changed',
  z.object({ overloaded: z.boolean(), refused: z.int() }),
  'Requests begin, or cease, to be refused for lack of memory.',
);

export const spoolChanged = defineTopic(
  'otlp.spool_changed',
  z.object({ reason: z.string().optional() }),
  'Rows cannot be kept on disk, for a reason, or can be again.',
);

export function registerIntakeActor<S>(context: PluginContext<S>): void {
  const toReceiver = (event: IntakeEvent) => [{ key: RECEIVER, event }];
  context.actor(intakeActor);
  context.route(databaseChanged, intakeActor, ({ payload: { place, reason, since } }) =>
    toReceiver(
      reason === undefined
        ? { type: 'DATABASE_AVAILABLE', place }
        : { type: 'DATABASE_UNAVAILABLE', place, reason, since },
    ),
  );
  context.route(loadChanged, intakeActor, ({ payload: { overloaded, refused } }) =>
    toReceiver(overloaded ? { type: 'OVERLOADED' } : { type: 'RELIEVED', refused }),
  );
  context.route(spoolChanged, intakeActor, ({ payload: { reason } }) =>
    toReceiver(reason === undefined ? { type: 'SPOOL_WRITABLE' } : { type: 'SPOOL_BLOCKED', reason }),
  );
}

/** What the spool holds. */
export interface SpoolLoad {
  readonly bytes: number;
  readonly rows: number;
  /** When the oldest of them was written, epoch milliseconds. */
  readonly oldest: number | undefined;
}

/**
 * The receiver's part of the health page; not ok while it refuses everything, or keeps rows from the database.
 *
 * @param state of the actor, if there is one
 * @param damaged frames of the spool that cannot be read any more
 * @param now epoch milliseconds
 */
export function intakeHealth(
  state: IntakeContext | undefined,
  spool: SpoolLoad,
  damaged: number,
  now: number,
): Json {
  const { blocked, unavailable, unavailableSince = now, place } = state ?? {};
  const reason =
    blocked !== undefined
      ? `telemetry is refused: ${blocked}`
      : unavailable !== undefined
        ? `telemetry is kept on disk since ${new Date(unavailableSince).toISOString()}: ${unavailable}`
        : undefined;
  const lagMs = spool.oldest === undefined ? 0 : now - spool.oldest;
  const waiting = spool.rows === 0 ? 'no row waits' : `${counted(spool.rows, 'row waits', 'rows wait')}`;
  const since = spool.rows === 0 || lagMs < 1_000 ? '' : `, the oldest for ${duration(lagMs)}`;
  return {
    text: [
      reason ?? 'takes telemetry',
      `${waiting} for the database${since}`,
      ...(damaged > 0
        ? [`${counted(damaged, 'damaged batch was', 'damaged batches were')} lost at the start`]
        : []),
    ].join('; '),
    ok: reason === undefined,
    ...(reason !== undefined && { reason }),
    ...(place !== undefined && { database: place }),
    spool: { rows: spool.rows, bytes: spool.bytes },
    ...(damaged > 0 && { damagedFrames: damaged }),
    lagSeconds: Math.round(lagMs / 1000),
  };
}

/** For `holdfast doctor stack`: whether the running instance takes telemetry and gets it into the database. */
export function intakeCheck({ running }: CheckContext): CheckResult {
  const surfaces = ['otlpHttp', 'otlpGrpc', 'otlpMtls'].flatMap((name) => running?.surfaces[name]?.url ?? []);
  const lookedAt = surfaces.length > 0 ? surfaces.join(', ') : 'the receiver of the running instance';
  const fact = running?.facts.otlp;
  if (!isObject(fact)) {
    const found = running ? 'the instance has no receiver' : 'no instance runs, so no telemetry is received';
    const remedy = running
      ? '`holdfast status` shows why the otlp plugin is not there.'
      : 'Start it with `holdfast start`.';
    return { state: 'warn', lookedAt, found, remedy };
  }
  if (fact.ok === true && typeof fact.damagedFrames === 'number')
    return {
      state: 'warn',
      lookedAt,
      found: `at its start ${fact.damagedFrames} batches on disk were damaged: their rows are lost`,
      remedy: 'Check the disk that holds the data folder; the next start forgets this.',
    };
  if (fact.ok === true)
    return { state: 'ok', lookedAt, found: `inserts into ${fact.database ?? 'the database'}` };
  const isDisk = String(fact.reason).includes('the disk refuses');
  return {
    state: 'fail',
    lookedAt,
    found: String(fact.reason),
    remedy: isDisk
      ? 'Make room on the disk that holds the data folder. Telemetry is then taken again by itself, and exporters send again what was refused.'
      : '`holdfast log tail` shows since when. Nothing that was answered is lost: it is inserted when the database takes it.',
  };
}
