import { AssertionError } from 'node:assert';
import { fileURLToPath } from 'node:url';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { openReader } from '../../kernel/log/portable/open-reader.ts';
import type { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import type { NotCompared, ReplayReport } from '../../kernel/replay/verify.ts';
import { verifyLog } from '../../kernel/replay/verify-log.ts';
import { loadConfig } from '../config/load.ts';
import { divergenceLines } from '../divergence-text.ts';
import { PluginHost } from '../plugin/host.ts';

/** What `replayFixture` compared, and what it did not. @public */
export interface FixtureReport extends ReplayReport {
  /** Records that were decided again with the same result, by the type of their actor. */
  readonly compared: Readonly<Record<string, number>>;
}

/**
 * Replays a log that an earlier release wrote, and holds today's machines to it: every record must be decided as it
 * stands there, by today's machine or by one that the definition keeps under `earlier`.
 *
 * The log may be a whole one with records of any actors. With `actors`, those of other types are left out, and the report
 * lists them under `notCompared`; each type that is given must have records, so that a renamed one does not pass unseen.
 *
 * @param log a file of `holdfast log export`, or a data folder
 * @param actors the definitions to hold to it; all of the plugins in the working directory's `plugins.config.ts` unless given
 * @throws AssertionError showing the first record that is decided otherwise, or what could not be compared
 * @throws HF_LOG_*, HF_PORTABLE_* the log cannot be read; HF_CONFIG_* there is no such configuration
 * @example
 * await replayFixture('test/fixtures/logs/0.2.0/killed.jsonl.gz');
 * @public
 */
export async function replayFixture(
  log: string | URL,
  actors?: readonly ActorDefinition[],
): Promise<FixtureReport> {
  const definitions = actors ?? new PluginHost((await loadConfig()).plugins).register().actors;
  const reader = await openReader(log instanceof URL ? fileURLToPath(log) : log);
  try {
    const report = verifyLog(reader, new Map(definitions.map((one) => [one.type, one])));
    if (report.divergence) {
      const { expected, got } = report.divergence;
      const message = divergenceLines(report.divergence, { paint: (_, text) => text }).join('\n');
      throw new AssertionError({ message, expected, actual: got, operator: 'replayFixture' });
    }
    const left = report.notCompared.filter(({ current }) => current !== undefined || actors === undefined);
    refuse('records could not be compared', [...left.map(reasonOf), ...behindGap(report)], left);
    const compared = comparedIn(reader, report.notCompared);
    const wanted = actors?.map(({ type }) => type) ?? [];
    const without = wanted.filter((type) => compared[type] === undefined);
    refuse(
      'nothing was compared of actors that were given',
      without.map((type) => `${type} has no record in the log; was it named otherwise?`),
      without,
    );
    if (Object.keys(compared).length === 0)
      refuse('nothing was compared', ['the log has no record of the actors'], []);
    return { ...report, compared };
  } finally {
    reader.close();
  }
}

function refuse(what: string, reasons: readonly string[], actual: unknown): void {
  if (reasons.length === 0) return;
  const message = [`${what}:`, ...reasons.map((reason) => `  ${reason}`)].join('\n');
  throw new AssertionError({ message, expected: [], actual, operator: 'replayFixture' });
}

function reasonOf({ type, version, current, records }: NotCompared): string {
  const why =
    current === undefined
      ? 'nobody registers the type'
      : `version ${current} is here, and the machine is not kept under earlier`;
  return `${records} of ${type} by version ${version}: ${why}`;
}

function behindGap({ unknown = 0 }: ReplayReport): string[] {
  return unknown > 0 ? [`${unknown} behind a gap, which a repair left: no state was saved before them`] : [];
}

function comparedIn(reader: SqliteReader, left: readonly NotCompared[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const page of reader.pages())
    for (const { actor } of page) {
      const { type } = parseActorRef(actor);
      counts.set(type, (counts.get(type) ?? 0) + 1);
    }
  for (const { type, records } of left) counts.set(type, (counts.get(type) ?? 0) - records);
  return Object.fromEntries([...counts].filter(([, count]) => count > 0));
}
