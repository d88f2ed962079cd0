import { HostError } from '../../core/host/errors/host-error.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { withLog } from './source.ts';

type Sources = string | readonly string[];

/** What a command that reads one log was told of it. */
export interface LogChoice {
  /** Its words, for errors. */
  readonly command: string;
  /** Logs that its arguments name. */
  readonly given: readonly string[];
  /** Finds what is read without `--host`. */
  readonly here: () => Sources | Promise<Sources>;
}

/**
 * Opens the log that a command reads, that of the host named by `--host` or one on this machine, and closes it when `work` has ended.
 *
 * @throws HF_CLI_USAGE all hosts are named, or a host and another log; HF_LOG_MISSING, HF_LOG_FORMAT, HF_LOG_CORRUPT, HF_PORTABLE_*; what the
 * feature says that keeps the logs of hosts
 */
export async function withChosenLog<T>(
  flags: Readonly<Record<string, unknown>>,
  { command, given, here }: LogChoice,
  context: CommandContext,
  work: (log: SqliteReader) => Promise<T>,
): Promise<T> {
  if (flags.host === undefined) return withLog(await here(), work, context.signal);
  const wrong = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command });
  if (flags.host === 'all') throw wrong('Each host numbers its own records: name one host.');
  const { withHosts } = await import('./hosts.ts');
  return withHosts(flags, given, command, context, async ([log]) => {
    if (!log) throw wrong('--host names no host.');
    return work(log.reader);
  });
}
