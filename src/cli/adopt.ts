import { existsSync } from 'node:fs';
import { leaveAdoptedNote } from '../core/host/adopted-note.ts';
import { HostError } from '../core/host/errors/host-error.ts';
import { operatorName } from '../core/host/operations/control-client.ts';
import type { CommandContext, StoredHostLog } from '../core/host/plugin/command.ts';
import { progressOf } from '../core/host/progress.ts';
import { openVault } from '../core/host/secrets/vault.ts';
import { plainText } from '../core/host/terminal.ts';
import { recover } from '../core/kernel/actors/recover.ts';
import { KernelError } from '../core/kernel/errors/kernel-error.ts';
import { portableHeader, portableLines } from '../core/kernel/log/portable/export.ts';
import { importLog } from '../core/kernel/log/portable/import.ts';
import { logFile } from '../core/kernel/log/schema.ts';
import { CliError } from './errors.ts';

/** What a log does not hold, for whoever goes on with it on another machine. */
const LEFT_BEHIND = [
  'stored configs: their records are here, their bodies were sealed with a key that never left that machine',
  'secrets that were bound to its device or sealed with its vault: enter them again',
  'files beside the log, e.g. databases of plugins: restore them from their own backup',
];

/**
 * `holdfast start --adopt`: fills an empty data folder from the log of a host that is lost, as NATS holds it. The start that
 * follows goes on as that host.
 *
 * @throws HF_LOG_EXISTS the folder holds a log; HF_ADOPT_NAME this host has another name; HF_ADOPT_RUNNING that host still runs
 * @throws HF_LOG_CORRUPT, and what the feature that keeps the logs says
 */
export async function adoptHost(
  { adopt: host, force, reason }: Readonly<Record<string, unknown>>,
  context: CommandContext,
): Promise<void> {
  const { dataDir, signal, note } = context;
  if (typeof host !== 'string' || host === '')
    throw new HostError('HF_CLI_USAGE', { reason: '--adopt names no host.', command: 'start' });
  if (existsSync(logFile(dataDir))) throw new KernelError('HF_LOG_EXISTS', { dir: dataDir });
  const kept = await context.hostLogs();
  let log: StoredHostLog | undefined;
  try {
    if (kept.own !== host) throw new CliError('HF_ADOPT_NAME', { host, own: kept.own });
    if (force !== true && (await kept.isRunning(host))) throw new CliError('HF_ADOPT_RUNNING', { host });
    log = await kept.open(host, signal);
    if (log.lacks !== undefined) note(`${plainText(host)}: ${log.lacks}`);
    const { reader } = log;
    const [from, to] = [Math.max(reader.firstSeq(), 1), reader.lastSeq()];
    const header = portableHeader(reader, { from, to }, Date.now());
    const before = from > 1 ? recover(reader, from - 1).states.values() : [];
    const lines = numbered(portableLines(reader, { from, to }, header, before));
    const { records } = await importLog({ name: `the log of ${host} in NATS`, lines }, dataDir, {
      signal,
      onProgress: progressOf('Filling', context),
      // The vault refuses to make new keys once there is a log, so they are made before.
      prepare: () => openVault(dataDir),
    });
    const why = typeof reason === 'string' ? { reason } : {};
    leaveAdoptedNote(dataDir, { at: Date.now(), by: operatorName(), records, ...why });
    note(`Took over ${records} records of ${plainText(host)}, ${from} to ${to}, chain ok.`);
    note('The rest is not part of a log, and comes back in other ways:');
    for (const line of LEFT_BEHIND) note(`  ${line}`);
  } finally {
    log?.reader.close();
    await kept.close();
  }
}

async function* numbered(lines: Iterable<string>): AsyncGenerator<{ text: string; line: number }> {
  let line = 0;
  for (const text of lines) {
    line += 1;
    yield { text: text.slice(0, -1), line };
  }
}
