import { newest, type Selection } from '../../core/host/history/select.ts';
import type { LogReader } from '../../core/kernel/log/event-log.ts';

/**
 * Explains why a selection has no record: names the first of its filters that matches no record even alone.
 *
 * @param signal ends the searches
 */
export async function whyNone(
  reader: LogReader,
  selection: Selection,
  signal?: AbortSignal,
): Promise<string> {
  const { from, to, only, without: _, ...others } = selection;
  const fits = async (part: Selection) => (await newest(reader, part, 1, signal)).records.length > 0;
  if ((from || to) && !(await fits({ from, to }))) return 'there is none between --from and --to';
  if (only && !(await fits({ only }))) return 'none has --failed';
  for (const [flag, value] of Object.entries(others)) {
    if (value === undefined || (await fits({ [flag]: value }))) continue;
    return `none has --${flag} ${typeof value === 'object' ? value.source : value}`;
  }
  return 'each filter alone matches some records';
}
