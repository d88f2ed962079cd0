import { setImmediate as turn } from 'node:timers/promises';
import { HoldfastError } from '../../errors/index.ts';
import type { Anchor } from '../../log/integrity.ts';
import type { CommandDefinition } from '../../plugin/command.ts';

/** `holdfast log verify`: is every record what was written, and is none missing (C9)? */
export const logVerify: CommandDefinition = {
  name: 'log verify [source]',
  summary:
    'check that every record is what was written and that none is missing; exit 1 with the first that is not',
  example: 'holdfast log verify --anchor 1204:9f86d081…',
  flags: [
    {
      flags: '--anchor <seq:hash>',
      summary: 'a head that an earlier check printed: finds a log that was cut off or written anew since',
    },
  ],
  async run([source], flags, context) {
    const { json, print, terminal, signal } = context;
    const anchor = typeof flags.anchor === 'string' ? anchorOf(flags.anchor) : undefined;
    const [{ jsonText, sourceOf, withLog }, { integritySteps }] = await Promise.all([
      import('../log-view/index.ts'),
      import('../../log/integrity.ts'),
    ]);
    const report = await withLog(
      sourceOf(source, context),
      async (log) => {
        const last = log.lastSeq();
        const steps = integritySteps(log, anchor);
        for (;;) {
          const { done, value } = steps.next();
          if (done) return value;
          terminal.progress(`checked ${value} of ${last} records`);
          await turn();
          signal.throwIfAborted();
        }
      },
      signal,
    );
    if (json) return print(jsonText({ ok: true, ...report }, 2));
    const { first, last, records, checkpoints, partial, head } = report;
    print(terminal.paint('green', 'Every record is what was written.'));
    print(`${records} records, ${first} to ${last}; ${checkpoints} checkpoints of saved states agree`);
    if (partial) print('It holds some actors only: whether records between are missing cannot be told.');
    if (head) {
      print(`Head: ${head}`);
      print('Keep the head elsewhere: --anchor finds with it what was cut off or written anew later.');
    }
  },
};

/** @throws HF_CLI_USAGE */
function anchorOf(text: string): Anchor {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash };
  const reason = '--anchor takes a head as log verify prints it: a record number, a colon and 64 hex digits.';
  throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'log verify' });
}
