import { z } from 'zod';
import { HostError } from './errors/host-error.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @returns milliseconds of a text such as `30s`, `15m`, `1h` or `2d`; undefined when it is none of these */
export function parseDuration(text: string): number | undefined {
  const { count, unit } = /^(?<count>\d{1,6})(?<unit>[smhd])$/.exec(text)?.groups ?? {};
  return unit === undefined ? undefined : Number(count) * (UNITS[unit] as number);
}

/** A time in a configuration, e.g. `15m`, that lies between two others. */
export function duration(least: string, most: string): z.ZodType<string, string> {
  const from = parseDuration(least) as number;
  const to = parseDuration(most) as number;
  return z.string().refine((text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= from && ms <= to;
  }, `it must be a time from ${least} to ${most}, e.g. 30s, 15m, 1h or 2d`);
}

/** @returns milliseconds of a text that `duration` has accepted */
export const msOf = (text: string): number => parseDuration(text) ?? 0;

/**
 * A time that was typed at a command, e.g. `--for 2h`.
 *
 * @returns milliseconds
 * @throws HF_CLI_USAGE it is none, or not within the bounds
 */
export function durationFlag(
  flag: string,
  text: unknown,
  { least, most, command }: { readonly least: string; readonly most: string; readonly command: string },
): number {
  const ms = parseDuration(String(text));
  if (ms !== undefined && ms >= msOf(least) && ms <= msOf(most)) return ms;
  const reason = `${flag} must be a time from ${least} to ${most}, not ${text}`;
  throw new HostError('HF_CLI_USAGE', { reason, command });
}
