import { divergenceLines } from '../../core/host/divergence-text.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { duration, jsonText, plainText } from '../../core/host/terminal.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { type AdoptionReport, adoptionSteps } from '../../core/kernel/replay/adoptions.ts';
import type { ReplayReport } from '../../core/kernel/replay/verify.ts';
import { CliError } from '../errors.ts';
import { FAILED, OK } from '../failure.ts';
import { withHosts } from '../log/hosts.ts';

/**
 * `holdfast replay verify --host all`: replays the log of each host, and compares what they took over from one another.
 *
 * @param replay replays one log
 */
export async function verifyHosts(
  sources: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  context: CommandContext,
  replay: (log: SqliteReader, context: CommandContext) => Promise<ReplayReport>,
): Promise<number> {
  const { json, print, terminal, signal } = context;
  const began = performance.now();
  const { reports, adoptions } = await withHosts(flags, sources, 'replay verify', context, async (logs) => {
    const replayed: { readonly host: string; readonly report: ReplayReport }[] = [];
    for (const { host, reader } of logs) replayed.push({ host, report: await replay(reader, context) });
    const readers = new Map(logs.map(({ host, reader }) => [host, reader]));
    return { reports: replayed, adoptions: await runSteps(adoptionSteps(readers), signal) };
  });
  const left = reports.reduce((sum, { report }) => sum + leftOf(report), adoptions.unknown);
  const diverged = reports.find(({ report }) => report.divergence);
  const ok = !diverged && adoptions.wrong.length === 0 && !(flags.strict && left > 0);
  const ms = Math.round(performance.now() - began);
  if (json) {
    const hosts = reports.map(({ host, report }) => ({ host, chain: 'ok', ...report }));
    print(jsonText({ ok, hosts, adoptions, ms }, 2));
    return ok ? OK : FAILED;
  }
  for (const { host, report } of reports) {
    const { records, actors, divergence } = report;
    const rest = leftOf(report) > 0 ? `, ${leftOf(report)} not compared` : '';
    print(
      `${plainText(host)}: ${records} records of ${actors} actors, ${divergence ? 1 : 0} divergences, chain ok${rest}`,
    );
    for (const line of divergence ? divergenceLines(divergence, terminal) : []) print(line);
  }
  for (const line of adoptionLines(adoptions)) print(line);
  if (diverged?.report.divergence) {
    const { seq, actor } = diverged.report.divergence.record;
    throw new CliError('HF_REPLAY_DIVERGED', { seq, actor });
  }
  const [wrong] = adoptions.wrong;
  if (wrong) throw new CliError('HF_REPLAY_DIVERGED', { seq: wrong.record.seq, actor: wrong.record.actor });
  if (!ok) throw new CliError('HF_REPLAY_NOT_COMPARED', { records: left });
  const verdict =
    left === 0 ? 'Every decision was repeated' : 'Every decision that could be compared was repeated';
  print(terminal.paint('green', `${verdict} with the same result, in ${duration(ms)}.`));
  return OK;
}

function leftOf({ notCompared, unknown = 0 }: ReplayReport): number {
  return notCompared.reduce((sum, { records }) => sum + records, unknown);
}

function adoptionLines({ adoptions, wrong, unknown }: AdoptionReport): string[] {
  return [
    `${adoptions} actors were taken over from another host: ${adoptions - wrong.length - unknown} as that one left them`,
    ...(unknown > 0
      ? [`${unknown} could not be compared: the other host's log is not here, or not that far back`]
      : []),
    ...wrong.map(
      ({ host, record, reason }) =>
        `${plainText(host)} record ${record.seq} (${plainText(record.actor)}): ${reason}`,
    ),
  ];
}
