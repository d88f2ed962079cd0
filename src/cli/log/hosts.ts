import { resolve } from 'node:path';
import { HostError } from '../../core/host/errors/host-error.ts';
import { type HostRecord, mergedRecords } from '../../core/host/history/merged.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { inBatches, newest, type Selection } from '../../core/host/history/select.ts';
import { shown } from '../../core/host/history/shown.ts';
import { Story } from '../../core/host/history/story.ts';
import type { PluginWords } from '../../core/host/history/words.ts';
import type { CommandContext, OrphanedRecords, StoredHostLog } from '../../core/host/plugin/command.ts';
import { jsonText, plainText } from '../../core/host/terminal.ts';
import { recover } from '../../core/kernel/actors/recover.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import { integritySteps } from '../../core/kernel/log/integrity.ts';
import { portableHeader, portableLines } from '../../core/kernel/log/portable/export.ts';
import { writePortable } from '../../core/kernel/log/portable/file.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { Layout, LEFT_OUT } from './layout.ts';

/** So much of a log's records is printed at once, so that what belongs together is one line. */
const BATCH = 500;

/**
 * Opens the logs of the hosts that `--host` names, and closes them when `work` has ended.
 *
 * @param sources arguments of the command, which name other logs
 * @throws HF_CLI_USAGE both are named, or the name is empty; HF_LOG_CORRUPT; what the feature says
 */
export async function withHosts<T>(
  { host }: Readonly<Record<string, unknown>>,
  sources: readonly string[],
  command: string,
  { hostLogs, note, signal }: CommandContext,
  work: (logs: readonly StoredHostLog[]) => Promise<T>,
): Promise<T> {
  const wrong = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command });
  if (typeof host !== 'string' || host === '') throw wrong('--host is empty.');
  if (sources.length > 0) throw wrong('--host reads from NATS: name no other log.');
  const kept = await hostLogs();
  const logs: StoredHostLog[] = [];
  try {
    for (const one of host === 'all' ? await kept.hosts() : [host]) logs.push(await kept.open(one, signal));
    for (const { host: name, lacks } of logs) if (lacks !== undefined) note(`${name}: ${lacks}`);
    return await work(logs);
  } finally {
    for (const { reader } of logs) reader.close();
    await kept.close();
  }
}

/** The newest records of all hosts as one story, each line with its host. @param limit of records; infinite for all */
export async function listHosts(
  logs: readonly StoredHostLog[],
  selection: Selection,
  limit: number,
  { all, words }: { readonly all: boolean; readonly words: PluginWords },
  { print, note, terminal, json, signal }: CommandContext,
): Promise<void> {
  let hasMore = false;
  const hosts = await Promise.all(
    logs.map(async ({ host, reader, clockBehindMs }) => {
      if (!Number.isFinite(limit))
        return { host, clockBehindMs, records: eachOf(inBatches(reader, selection, signal)) };
      const { records, more } = await newest(reader, selection, limit, signal);
      hasMore ||= more;
      return { host, clockBehindMs, records };
    }),
  );
  const layout = new Layout(
    terminal,
    Math.max(0, ...logs.map(({ reader }) => reader.lastSeq())),
    logs.map(({ host }) => host),
  );
  const stories = new Map(
    logs.map(({ host }) => [host, new Story({ all, describe: words.describe, apart: all })]),
  );
  const orphaned = orphanedOf(logs);
  let before = '[';
  const printAll = async (records: readonly HostRecord[]) => {
    await words.prepare(records.map(({ record }) => record));
    for (const { host, record } of json ? records : []) {
      const by = orphaned(host, record)?.by;
      print(`${before}${jsonText({ host, ...(by !== undefined && { orphanedBy: by }), ...shown(record) })}`);
      before = ',';
    }
    for (const run of json ? [] : runsOf(records, orphaned)) {
      const [first] = run;
      if (!first) continue;
      const { host, record } = first;
      const branch = orphaned(host, record);
      if (branch) print(orphanLine(host, run.length, branch));
      const lines = stories.get(host)?.add(run.map(({ record }) => shown(record))) ?? [];
      for (const line of layout.lines(lines, host)) print(line);
    }
  };
  const waiting: HostRecord[] = [];
  for await (const one of mergedRecords(hosts)) {
    waiting.push(one);
    if (Number.isFinite(limit)) {
      if (waiting.length > limit) hasMore = waiting.shift() !== undefined;
    } else if (waiting.length === BATCH) await printAll(waiting.splice(0));
  }
  if (hasMore && !json) note(terminal.paintError('dim', LEFT_OUT));
  else if (waiting.length === 0 && Number.isFinite(limit) && !json)
    note(terminal.paintError('dim', `(no record of ${logs.map(({ host }) => host).join(', ')} matches)`));
  await printAll(waiting);
  if (json) print(before === '[' ? '[]' : ']');
}

async function* eachOf(batches: AsyncIterable<readonly LogRecord[]>): AsyncGenerator<LogRecord> {
  for await (const batch of batches) yield* batch;
}

type Orphaned = (host: string, record: LogRecord) => OrphanedRecords | undefined;

/** @returns finds the branch of a record that does not count */
function orphanedOf(logs: readonly StoredHostLog[]): Orphaned {
  const branches = new Map(logs.map(({ host, orphaned }) => [host, orphaned]));
  return (host, { seq, actor }) =>
    branches
      .get(host)
      ?.find(({ from, to, types }) => seq >= from && seq <= to && types.includes(parseActorRef(actor).type));
}

function orphanLine(host: string, count: number, { singleton, by }: OrphanedRecords): string {
  const what = count === 1 ? 'record does' : `${count} records do`;
  return `── the next ${what} not count: ${plainText(by)} had taken ${plainText(singleton)} over from ${plainText(host)} ──`;
}

/** Neighbours of one host that all count, or are of one orphaned branch. */
function runsOf(records: readonly HostRecord[], orphaned: Orphaned): HostRecord[][] {
  const runs: HostRecord[][] = [];
  for (const one of records) {
    const last = runs.at(-1);
    const [first] = last ?? [];
    const isSame =
      first?.host === one.host && orphaned(one.host, first.record) === orphaned(one.host, one.record);
    if (last && isSame) last.push(one);
    else runs.push([one]);
  }
  return runs;
}

/** Checks the log of each host against the key that its stream names. @throws HF_LOG_CORRUPT naming the first bad record */
export async function verifyStored(logs: readonly StoredHostLog[], context: CommandContext): Promise<void> {
  const { print, json, signal, terminal } = context;
  const checked = [];
  for (const { host, reader, key } of logs)
    checked.push({ host, ...(await runSteps(integritySteps(reader, { key }), signal)) });
  if (json) return print(jsonText({ ok: true, hosts: checked }, 2));
  for (const { host, records, first, last, signed } of checked) {
    const until = signed ? `signed up to record ${signed.upTo}` : 'not signed yet';
    print(`${plainText(host)}: ${records} records, ${first} to ${last}, ${until}`);
  }
  print(terminal.paint('green', 'No record was changed, and none is missing.'));
}

/** Writes the log of each host to a file of its own. @returns what was written */
export async function exportHosts(
  logs: readonly StoredHostLog[],
  fileOf: (host: string) => string,
  { signal }: CommandContext,
): Promise<{ host: string; file: string; bytes: number; records: number }[]> {
  const written = [];
  for (const { host, reader } of logs) {
    const [from, to] = [Math.max(reader.firstSeq(), 1), reader.lastSeq()];
    const file = resolve(fileOf(host));
    const header = portableHeader(reader, { from, to }, Date.now());
    const before = from > 1 ? recover(reader, from - 1).states.values() : [];
    const bytes = await writePortable(file, portableLines(reader, { from, to }, header, before), signal);
    written.push({ host, file, bytes, records: to - from + 1 });
  }
  return written;
}
