import { HostError } from '../../core/host/errors/host-error.ts';
import { placeOf, referenceTime, seqAt } from '../../core/host/history/place.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { plainText } from '../../core/host/terminal.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { withHosts } from '../log/hosts.ts';
import { parsePlace } from '../log/place.ts';

/** What was found in the log of a host. */
export interface OfHost<T> {
  readonly host: string;
  readonly found: T;
}

/**
 * Looks at the logs of all hosts at the same times, which are of the clock that the hosts share. Hosts whose logs begin later are
 * left out, and named.
 *
 * @param times as people write them
 * @param given logs that the command's arguments name
 * @param look gets the newest record of a host at each of the times
 * @throws HF_CLI_USAGE a record's number stands for a time, or other logs are named; HF_LOG_RANGE every log begins later; HF_LOG_CORRUPT; what
 * the feature says that keeps the logs of hosts
 */
export async function lookAtEveryHost<T>(
  times: readonly string[],
  { command, given }: { readonly command: string; readonly given: readonly string[] },
  context: CommandContext,
  look: (log: SqliteReader, seqs: readonly number[]) => Promise<T>,
): Promise<OfHost<T>[]> {
  if (times.some((text) => 'seq' in (placeOf(text, 0) ?? {}))) {
    const reason = 'Each host numbers its own records: name a time, or one host.';
    throw new HostError('HF_CLI_USAGE', { reason, command });
  }
  return withHosts({ host: 'all' }, given, command, context, async (logs) => {
    const now = Math.max(
      ...logs.map(({ reader, clockBehindMs: ms }) => referenceTime(reader, Date.now() - ms) + ms),
    );
    const found: OfHost<T>[] = [];
    for (const { host, reader, clockBehindMs } of logs) {
      const seqs: number[] = [];
      for (const text of times) {
        const place = parsePlace(text, 'The place', now);
        seqs.push(await seqAt(reader, 'at' in place ? { at: place.at - clockBehindMs } : place));
      }
      if (Math.min(...seqs) < reader.firstSeq()) context.note(`${plainText(host)}: its log begins later`);
      else found.push({ host, found: await look(reader, seqs) });
    }
    const [first] = logs;
    if (found.length > 0 || !first) return found;
    const range = { first: first.reader.firstSeq(), last: first.reader.lastSeq() };
    throw new KernelError('HF_LOG_RANGE', { seq: `as old as ${times.join(' or ')}`, ...range });
  });
}

/** Prints what was found, host by host. */
export function printOfHosts<T>(
  all: readonly OfHost<T>[],
  linesOf: (found: T) => readonly string[],
  { print, terminal }: CommandContext,
): void {
  for (const [index, { host, found }] of all.entries()) {
    if (index > 0) print('');
    print(terminal.paint(['bold', 'underline'], plainText(host)));
    for (const line of linesOf(found)) print(line);
  }
}
