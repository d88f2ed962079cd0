import { HostError } from '../../core/host/errors/host-error.ts';
import type { Selection } from '../../core/host/history/select.ts';
import { parsePlace } from './place.ts';

/**
 * @param now what times without a date are counted back from, epoch milliseconds
 * @throws HF_CLI_USAGE a place cannot be read, or --from is later than --to
 */
export function selectionOf(flags: Readonly<Record<string, unknown>>, now = Date.now()): Selection {
  const place = (flag: 'from' | 'to') => {
    const text = flags[flag];
    return typeof text === 'string' ? parsePlace(text, `--${flag}`, now) : undefined;
  };
  const text = (flag: string) => {
    const given = flags[flag];
    // An unset variable of a script must not select everything.
    if (given === '')
      throw new HostError('HF_CLI_USAGE', { reason: `--${flag} is empty.`, command: 'log list' });
    return typeof given === 'string' ? given : undefined;
  };
  const [from, to] = [place('from'), place('to')];
  const isBackwards =
    from && to && ('seq' in from ? 'seq' in to && from.seq > to.seq : 'at' in to && from.at > to.at);
  if (isBackwards) {
    const reason = `--from ${flags.from} is later than --to ${flags.to}.`;
    throw new HostError('HF_CLI_USAGE', { reason, command: 'log list' });
  }
  return {
    from,
    to,
    actor: text('actor'),
    correlation: text('correlation'),
    type: text('type'),
  };
}

/** @throws HF_CLI_USAGE it is not a number from `least` */
export function wholeNumber(text: unknown, what: string, least: number, command: string): number {
  const number = typeof text === 'string' && /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least) return number;
  const given = typeof text === 'string' ? `, not ${text || 'an empty text'}` : '';
  throw new HostError('HF_CLI_USAGE', {
    reason: `${what} takes a number from ${least}${given}.`,
    command,
  });
}
