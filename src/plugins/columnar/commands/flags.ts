import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

/** @throws HF_CLI_USAGE it is no whole number of that range */
export function wholeNumber(
  value: unknown,
  flag: string,
  least: number,
  most: number,
  command: string,
): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  const reason = `${flag} takes a whole number from ${least} to ${most}.`;
  throw new HoldfastError('HF_CLI_USAGE', { reason, command });
}
