import { resolve } from 'node:path';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import type { ExportPart } from '../../core/kernel/log/portable/export.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { rangeFlags, selectionFlags, selectionOf } from '../log-view/flags.ts';
import type { Selection } from '../log-view/select.ts';

/** `holdfast log export`: the log, or a part of it that can be replayed, in one file (C6). */
export const logExport: CommandDefinition = {
  name: 'log export [source]',
  summary: 'write the log, or a part of it that can be replayed, into one file',
  example: 'holdfast log export --from 03:00 --to 03:15 --out incident.jsonl.gz',
  flags: [
    { flags: '--out <file>', summary: 'where to; .gz or .zst at its end compresses it' },
    ...rangeFlags,
    ...selectionFlags.filter(({ flags }) => !flags.startsWith('--type')),
  ],
  async run([source], flags, context) {
    const { json, print, signal } = context;
    if (typeof flags.out !== 'string') {
      throw new HoldfastError('HF_CLI_USAGE', { reason: '--out FILE is needed.', command: 'log export' });
    }
    const out = resolve(flags.out);
    selectionOf(flags); // a slip is told before the log is opened
    const [
      { jsonText, referenceTime, sourceOf, timestamp, withLog },
      { recover },
      { portableHeader, portableLines },
      { writePortable },
      { findLogKey },
    ] = await Promise.all([
      import('../log-view/index.ts'),
      import('../../core/kernel/actors/recover.ts'),
      import('../../core/kernel/log/portable/export.ts'),
      import('../../core/kernel/log/portable/file.ts'),
      import('../../core/kernel/log/signing.ts'),
    ]);
    const place = sourceOf(source, context);
    const done = await withLog(place, async (log) => {
      const part = await partOf(log, selectionOf(flags, referenceTime(log)), context);
      const header = portableHeader(log, part, Date.now());
      const { from } = header.range;
      const before = from > 1 ? recover(log, from - 1).states.values() : [];
      const bytes = await writePortable(
        out,
        portableLines(log, part, header, before, findLogKey(place)),
        signal,
      );
      return { header, bytes };
    });
    const { range, time, complete, actors } = done.header;
    if (json) return print(jsonText({ file: out, bytes: done.bytes, header: done.header }, 2));
    const whose = complete ? '' : ` of ${actors?.length} actors`;
    print(`Exported records ${range.from} to ${range.to}${whose} to ${out}`);
    print(`${timestamp(time.from)} to ${timestamp(time.to)}; without sealed configs`);
    print(`Read it anywhere: holdfast log list ${flags.out}, holdfast replay verify ${flags.out}`);
  },
};

/**
 * A story or an actor is exported with all that its actors did meanwhile: a machine cannot be replayed with events
 * left out.
 */
async function partOf(log: SqliteReader, selection: Selection, context: CommandContext): Promise<ExportPart> {
  const { boundsOf, inBatches } = await import('../log-view/index.ts');
  const bounds = await boundsOf(log, selection);
  const from = Math.max(bounds.from, log.firstSeq(), 1);
  const to = Math.min(bounds.to, log.lastSeq());
  const { actor, correlation } = selection;
  if (actor === undefined && correlation === undefined) return { from, to };
  const actors = new Set<string>();
  let first: number | undefined;
  let last = from;
  for await (const batch of inBatches(
    log,
    { ...selection, from: { seq: from }, to: { seq: to } },
    context.signal,
  )) {
    for (const record of batch) {
      actors.add(record.actor);
      first ??= record.seq;
      last = record.seq;
    }
  }
  if (correlation === undefined || first === undefined) return { from, to, actors };
  return { from: first, to: last, actors, correlation };
}
