import { resolve } from 'node:path';
import test from 'ava';
import { Configuration } from '../../src/cli/configuration.ts';
import { CLOCK_SET, INIT, type LogRecord, MIGRATE } from '../../src/core/kernel/log/record.ts';
import { builtinPlugins } from '../../src/main.ts';

/** What happens to every actor, in words of the log itself. */
const OF_THE_LOG = new Set<string>([INIT, MIGRATE, CLOCK_SET, 'effect.done', 'effect.failed', 'effect.lost']);
/** Without these, some events have nothing to say. */
const FIELDS = { text: 'a text', kind: 'up' };
const CHECK = { at: 0, tookMs: 1, files: 1, bytes: 1, records: 1, archives: 0, findings: [] };

const here = { cwd: resolve(import.meta.dirname, '../..'), env: {}, builtinPlugins };

test('[C6] each event and timer of a shipped actor that changes its state is shown in words', async (t) => {
  const bare: string[] = [];
  for (const definition of await new Configuration(here).actors()) {
    const { type: actor, machine } = definition;
    for (const type of machine.events) {
      if (OF_THE_LOG.has(type)) continue;
      const record: LogRecord = {
        ...{
          seq: 1,
          at: 0,
          actor: `${actor}/one`,
          machine: machine.id,
          version: 1,
          correlation: 'c',
          effects: [],
        },
        ...{
          event: { type, ...(actor === 'runtime.data_check' ? CHECK : FIELDS) },
          from: 'before',
          to: { value: 'after' },
        },
      };
      let words: string | undefined;
      try {
        words = definition.describe?.(record);
      } catch {
        words = 'its fields are missing';
      }
      if (!words) bare.push(`${actor} ${type}`);
    }
  }
  t.deepEqual(bare, []);
});
