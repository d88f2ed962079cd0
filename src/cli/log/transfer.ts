import { resolve } from 'node:path';
import { HostError } from '../../core/host/errors/host-error.ts';
import { referenceTime } from '../../core/host/history/place.ts';
import { boundsOf, inBatches, type Selection } from '../../core/host/history/select.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { progressOf } from '../../core/host/progress.ts';
import { openVault } from '../../core/host/secrets/vault.ts';
import { jsonText, timestamp } from '../../core/host/terminal.ts';
import { recover } from '../../core/kernel/actors/recover.ts';
import type { ExportPart } from '../../core/kernel/log/portable/export.ts';
import { portableHeader, portableLines } from '../../core/kernel/log/portable/export.ts';
import { counted, writePortable } from '../../core/kernel/log/portable/file.ts';
import { importLog } from '../../core/kernel/log/portable/import.ts';
import { findLogKey } from '../../core/kernel/log/signing.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { makeDataFolder } from '../data-folder.ts';
import { selectionOf } from './flags.ts';
import { sourceOf, withLog } from './source.ts';

/** `holdfast log export`: writes the log, or a part of it that can be replayed, to one file (C6). */
export const exportLog: CommandRun = async ([source], flags, context) => {
  const { json, print, signal } = context;
  if (typeof flags.out !== 'string') {
    throw new HostError('HF_CLI_USAGE', { reason: '--out FILE is needed.', command: 'log export' });
  }
  const out = resolve(flags.out);
  selectionOf(flags); // wrong flags are reported before the log is opened
  const place = sourceOf(source, context);
  const done = await withLog(place, async (log) => {
    const part = await partOf(log, selectionOf(flags, referenceTime(log)), context);
    const header = portableHeader(log, part, Date.now());
    const { from } = header.range;
    const before = from > 1 ? recover(log, from - 1).states.values() : [];
    const bytes = await writePortable(
      out,
      counted(
        portableLines(log, part, header, before, findLogKey(place)),
        header.complete ? header.range.to - from + 1 : undefined,
        progressOf('Exporting', context),
      ),
      signal,
    );
    return { header, bytes };
  });
  const { range, time, complete, actors } = done.header;
  if (json) return print(jsonText({ file: out, bytes: done.bytes, header: done.header }, 2));
  const some = complete ? '' : ` of ${actors?.length} actors`;
  print(`Exported records ${range.from} to ${range.to}${some} to ${out}`);
  print(`${timestamp(time.from)} to ${timestamp(time.to)}; without the sealed configs`);
  print(`Read it anywhere: holdfast log list ${flags.out}, holdfast replay verify ${flags.out}`);
};

/**
 * A story or an actor is exported with everything that its actors did meanwhile, because a machine cannot be replayed when
 * events are missing.
 */
async function partOf(log: SqliteReader, selection: Selection, context: CommandContext): Promise<ExportPart> {
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

/** `holdfast log import`: makes the log of a data folder from an exported file (C6). */
export const importFile: CommandRun = async ([file = ''], _flags, context) => {
  const { dataDir, json, print, signal } = context;
  makeDataFolder(dataDir);
  const { header, records } = await importLog(resolve(file), dataDir, {
    signal,
    onProgress: progressOf('Importing', context),
    // The vault refuses to make new keys once there is a log, so they are made before.
    prepare: () => openVault(dataDir),
  });
  if (json) return print(JSON.stringify({ dataDir, records, header }, null, 2));
  print(`Imported records ${header.range.from} to ${header.range.to} into ${dataDir}, chain ok.`);
  print('An export has no sealed configs: an instance that continues this log cannot revert to them.');
};
