/** `holdfast stack key-parity` and the check of doctor that shows the same table. */
import { z } from 'zod';
import { askIfRunning, askInstance } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { StartedCollector } from './active-keys.ts';
import { NO_COLLECTOR } from './errors.ts';
import { type ParityRow, readParity } from './key-parity.ts';
import type { CollectorOptions } from './options.ts';

const PARITY_PATH = '/collector/parity';
const DEADLINE_MS = 20_000;
/** Exit code when nothing differs, and not everything could be looked at. */
const NOT_ALL_SEEN = 3;

export function registerParity(context: PluginContext<StartedCollector>, options: CollectorOptions): void {
  context.control((surface, started) => {
    serveOperation(surface, PARITY_PATH, z.strictObject({}), async (_body, operation) => {
      const signal = AbortSignal.any([operation.signal, AbortSignal.timeout(DEADLINE_MS)]);
      return { keys: await readParity(started, options, signal) };
    });
  });
  context.command(parityCommand);
  context.check(parityCheck);
}

const COLOURS = {
  reference: 'bold',
  same: 'green',
  differs: 'red',
  missing: 'red',
  unknown: 'yellow',
} as const;

const parityCommand: CommandDefinition = {
  name: 'stack key-parity',
  summary:
    'Compares the ingest key in every place by its fingerprint; exit 1 when one differs or is missing, 3 when one could not be read',
  example: 'holdfast stack key-parity',
  async run(_args, _flags, context) {
    const { keys } = await askInstance<{ keys: ParityRow[] }>(context, PARITY_PATH, {}, NO_COLLECTOR);
    if (context.json) context.print(JSON.stringify({ keys }));
    else {
      const { paint } = context.terminal;
      for (const { what, place, state, fingerprint = '-', reason } of keys) {
        context.print(
          `${what.padEnd(18)}${paint(COLOURS[state], state.padEnd(10))}${fingerprint}  ${paint('dim', place)}`,
        );
        if (reason !== undefined) context.print(`${' '.repeat(18)}${reason}`);
      }
    }
    if (keys.some(isWrong)) return 1;
    return keys.some(({ state }) => state === 'unknown') ? NOT_ALL_SEEN : 0;
  },
};

const LOOKED_AT = 'the ingest key in every place';
const REMEDY =
  'Look at `holdfast stack key-parity`. The secrets store gets the key in use by `holdfast stack adopt-ingest-key`; what follows it is refreshed by the secret-sync object and restarts.';

const parityCheck: CheckDefinition = {
  name: 'stack.key_parity',
  async run({ dataDir, signal }: CheckContext) {
    const answer = await askIfRunning<{ keys: ParityRow[] }>(
      { dataDir, signal },
      PARITY_PATH,
      {},
      NO_COLLECTOR,
    );
    if (answer) return judgeParity(answer.keys);
    const remedy = 'Start Holdfast: the running instance reads the keys.';
    return {
      state: 'unknown',
      lookedAt: LOOKED_AT,
      found: 'no instance runs, so nothing was compared',
      remedy,
    };
  },
};

/** `ok` only when every place was read and has the key of the effective config. */
export function judgeParity(keys: readonly ParityRow[]): CheckResult {
  const lookedAt = LOOKED_AT;
  const wordsOf = (rows: readonly ParityRow[]) =>
    rows
      .map(({ what, place, state, reason }) => `${what} ${place} ${state}${reason ? ` (${reason})` : ''}`)
      .join('; ');
  const wrong = keys.filter(isWrong);
  if (wrong.length > 0) return { state: 'fail', lookedAt, found: wordsOf(wrong), remedy: REMEDY };
  const unseen = keys.filter(({ state }) => state === 'unknown');
  if (unseen.length > 0) return { state: 'unknown', lookedAt, found: wordsOf(unseen), remedy: REMEDY };
  const absent = keys
    .filter(({ state }) => state === 'missing')
    .map(({ what }) => `; the ${what} holds none, and needs none`);
  const has = keys.filter(({ state }) => state !== 'missing');
  return {
    state: 'ok',
    lookedAt,
    found: `${has[0]?.fingerprint} in ${has.map(({ what, place }) => `${what} ${place}`).join(', ')}${absent.join('')}`,
  };
}

function isWrong({ state, isOptional }: ParityRow): boolean {
  return state === 'differs' || (state === 'missing' && isOptional !== true);
}
