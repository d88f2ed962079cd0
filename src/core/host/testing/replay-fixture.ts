import { AssertionError } from 'node:assert';
import { fileURLToPath } from 'node:url';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import { openReader } from '../../kernel/log/portable/open-reader.ts';
import type { ReplayReport } from '../../kernel/replay/verify.ts';
import { verifyLog } from '../../kernel/replay/verify-log.ts';
import { loadConfig } from '../config/load.ts';
import { divergenceLines } from '../divergence-text.ts';
import { PluginHost } from '../plugin/host.ts';

/**
 * Replays a log that an earlier release wrote, and holds today's machines to it: every record must be decided as it
 * stands there, by today's machine or by one that the definition keeps under `earlier`.
 *
 * @param log a file of `holdfast log export`, or a data folder
 * @param actors the definitions; those of the plugins in the working directory's `plugins.config.ts` unless given
 * @throws AssertionError showing the first record that is decided otherwise, or what could not be compared
 * @throws HF_LOG_*, HF_PORTABLE_* the log cannot be read; HF_CONFIG_* there is no such configuration
 * @example
 * await replayFixture('test/fixtures/logs/0.2.0/killed.jsonl.gz');
 * @public
 */
export async function replayFixture(
  log: string | URL,
  actors?: readonly ActorDefinition[],
): Promise<ReplayReport> {
  const definitions = actors ?? new PluginHost((await loadConfig()).plugins).register().actors;
  const reader = await openReader(log instanceof URL ? fileURLToPath(log) : log);
  try {
    const report = verifyLog(reader, new Map(definitions.map((one) => [one.type, one])));
    if (report.divergence) {
      const { expected, got } = report.divergence;
      const message = divergenceLines(report.divergence, { paint: (_, text) => text }).join('\n');
      throw new AssertionError({ message, expected, actual: got, operator: 'replayFixture' });
    }
    if (report.notCompared.length > 0) {
      const left = report.notCompared.map(
        ({ type, version, current, records }) =>
          `  ${records} of ${type} by version ${version}: ${current === undefined ? 'nobody registers the type' : `version ${current} is here, and the machine is not kept under earlier`}`,
      );
      const message = `records could not be compared:\n${left.join('\n')}`;
      throw new AssertionError({
        message,
        expected: [],
        actual: report.notCompared,
        operator: 'replayFixture',
      });
    }
    return report;
  } finally {
    reader.close();
  }
}
