import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isObject, type Json } from '../../core/kernel/json.ts';
import type { TelemetryIntakeContext } from '../../machines/otlp/intake.ts';

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
