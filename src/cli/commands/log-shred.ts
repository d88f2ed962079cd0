import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { lockDataDir } from '../../core/kernel/log/lock.ts';

/** Where a running instance is asked to shred. */
const SHRED_PATH = '/log/shred';

/** `holdfast log shred`: whole configs that the log keeps sealed become unreadable; its records stay as they are. */
export const logShred: CommandDefinition = {
  name: 'log shred [fingerprint]',
  summary: 'make configs that are kept for a revert unreadable for ever; records and their chain stay',
  example: 'holdfast log shred fp_0b6ac3a52f1be8b6c3b1d0a7fd9c8a11',
  flags: [
    {
      flags: '--older-than <age>',
      summary:
        'all that were stored longer ago than this: 30d, 12h, 0s; not those that a present state names',
    },
  ],
  async run([fingerprint], flags, context) {
    const keys = await keysOf(fingerprint, flags.olderThan, context);
    if (keys.length > 0) await shred(keys, context);
    if (context.json) return context.print(JSON.stringify({ shredded: keys }, null, 2));
    for (const key of keys) context.print(`${key} is unreadable from now on.`);
    if (keys.length === 0) context.print('No body is that old, but for what is active or pending now.');
    else
      context.print('What would need it, a revert say, fails with HF_LOG_SHREDDED. Exports never held it.');
  },
};

async function keysOf(
  fingerprint: string | undefined,
  age: unknown,
  context: CommandContext,
): Promise<string[]> {
  const { parseAge } = await import('../../core/host/retention/limits.ts');
  const { withLog } = await import('../log-view/index.ts');
  const { dataDir } = context;
  if ((fingerprint === undefined) === (age === undefined))
    throw usage('A fingerprint or --older-than is needed, and not both.');
  if (fingerprint !== undefined) {
    const kept = await withLog(dataDir, async (log) => log.blob(fingerprint));
    if (!kept) throw new HoldfastError('HF_LOG_BODY_UNKNOWN', { fingerprint });
    return [fingerprint];
  }
  const ms = parseAge(String(age));
  if (ms === undefined) throw usage(`--older-than takes an age such as 30d or 12h, not ${String(age)}.`);
  const { recover } = await import('../../core/kernel/actors/recover.ts');
  return withLog(dataDir, async (log) => {
    // Without the body of what is active now, the next transaction could not be reverted.
    const needed = JSON.stringify([...recover(log).states.values()].map((state) => state.context));
    return log.blobKeys(Date.now() - ms + 1).filter((key) => !needed.includes(key));
  });
}

async function shred(keys: readonly string[], { dataDir, signal }: CommandContext): Promise<void> {
  const { askIfRunning } = await import('../../core/host/operations/ask.ts');
  if (await askIfRunning({ dataDir, signal }, SHRED_PATH, { keys }, 'it shreds nothing')) return;
  const { LogWriter } = await import('../../core/kernel/log/log-writer.ts');
  const { checkBeforeStart } = await import('../../core/kernel/log/signed-head.ts');
  const { withLog } = await import('../log-view/index.ts');
  const unlock = lockDataDir(dataDir);
  try {
    await withLog(dataDir, async (log) => checkBeforeStart(log, dataDir));
    const writer = new LogWriter({ dataDir, signEvery: Number.MAX_SAFE_INTEGER });
    try {
      while (writer.shred(keys)) signal.throwIfAborted();
    } finally {
      writer.close();
    }
  } finally {
    unlock();
  }
}

function usage(reason: string): HoldfastError {
  return new HoldfastError('HF_CLI_USAGE', { reason, command: 'log shred' });
}
