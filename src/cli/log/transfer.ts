import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
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

/** `holdfast log export`: writes the log, or a part of it that can be replayed, to one file (C6), or as one page (C15). */
export const exportLog: CommandRun = async ([source], flags, context) => {
  const { json, print } = context;
  if (flags.host !== undefined) return exportOfHosts(source === undefined ? [] : [source], flags, context);
  const files = filesOf(flags);
  const html = files.html === undefined ? undefined : (await context.exportForms()).html;
  if (files.html !== undefined && !html)
    throw wrongUse('--html needs the console, which this program lacks.');
  selectionOf(flags); // wrong flags are reported before the log is opened
  const place = sourceOf(source, context);
  const done = await withLog(place, async (log) => {
    const part = await partOf(log, selectionOf(flags, referenceTime(log)), context);
    const header = portableHeader(log, part, Date.now());
    const { from, to } = header.range;
    const lines = () => {
      const before = from > 1 ? recover(log, from - 1).states.values() : [];
      const all = portableLines(log, part, header, before, findLogKey(place));
      return counted(all, header.complete ? to - from + 1 : undefined, progressOf('Exporting', context));
    };
    const ends = { of: { first: log.firstSeq(), last: log.lastSeq() }, head: log.hashOf(to) ?? '' };
    const write = await html?.();
    return {
      header,
      // The page first: it may be refused, and then there is no file either.
      page: files.html && write && (await write({ header, lines: lines(), ...ends }, files.html, context)),
      bytes: files.out && (await writePortable(files.out, lines(), context.signal)),
    };
  });
  const { header, bytes, page } = done;
  if (json) {
    const both = files.out !== undefined && files.html !== undefined;
    return print(
      jsonText(
        {
          ...{ file: files.out ?? files.html, bytes: bytes ?? page, header },
          ...(both && { page: { file: files.html, bytes: page } }),
        },
        2,
      ),
    );
  }
  const { range, time, complete, actors } = header;
  const some = complete ? '' : ` of ${actors?.length} actors`;
  const written = [files.out, files.html].filter((file) => file !== undefined).join(' and ');
  print(`Exported records ${range.from} to ${range.to}${some} to ${written}`);
  print(`${timestamp(time.from)} to ${timestamp(time.to)}; without the sealed configs`);
  if (files.html !== undefined)
    print(`Open ${flags.html} in a browser: it holds the console, and needs no network.`);
  if (files.out === undefined) return;
  print(`Look at it: holdfast open ${flags.out}`);
  print(`Read it anywhere: holdfast log list ${flags.out}, holdfast replay verify ${flags.out}`);
};

/** Each host's log goes to a file of its own: their records are numbered apart. */
async function exportOfHosts(
  sources: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  context: CommandContext,
): Promise<void> {
  const { out, html, host } = flags;
  if (typeof out !== 'string' || out === '')
    throw wrongUse('--out is needed: a folder for --host all, else a file.');
  if (html !== undefined || ['from', 'to', 'actor', 'correlation'].some((flag) => flags[flag] !== undefined))
    throw wrongUse('--host writes whole logs: select from a file that it wrote.');
  const { exportHosts, withHosts } = await import('./hosts.ts');
  const written = await withHosts(flags, sources, 'log export', context, async (logs) => {
    if (host === 'all') mkdirSync(out, { recursive: true, mode: 0o700 });
    return exportHosts(logs, (name) => (host === 'all' ? join(out, `${name}.jsonl.gz`) : out), context);
  });
  if (context.json) return context.print(jsonText(written, 2));
  for (const { host: name, file, records } of written)
    context.print(`Exported ${records} records of ${name} to ${file}, chain ok`);
}

/** @throws HF_CLI_USAGE no file is named, or one twice */
function filesOf({ out, html }: Readonly<Record<string, unknown>>): {
  readonly out?: string;
  readonly html?: string;
} {
  const named = { ...(typeof out === 'string' && { out }), ...(typeof html === 'string' && { html }) };
  const files = Object.fromEntries(
    Object.entries(named).map(([name, file]) => [name, file && resolve(file)]),
  );
  if (files.out === undefined && files.html === undefined)
    throw wrongUse('--out FILE is needed, or --html FILE for a page.');
  const empty = Object.keys(files).find((name) => files[name] === '');
  if (empty !== undefined) throw wrongUse(`--${empty} is empty.`);
  if (/\.(?:gz|zst)$/.test(files.html ?? ''))
    throw wrongUse('--html writes a page, which no browser opens compressed.');
  if (files.out === files.html) throw wrongUse('--out and --html name the same file.');
  return files;
}

const wrongUse = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command: 'log export' });

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
