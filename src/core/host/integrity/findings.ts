import { z } from 'zod';

/**
 * Something in the data folder that is not as it was left.
 *
 * - `damaged`: it is certainly not what was written: its own checksum or hash does not fit, or its content changed and
 *   nothing wrote it.
 * - `changed`: its content is another one, and Holdfast did not write it. A person may have.
 * - `missing`: it is gone, and Holdfast did not remove it.
 */
export const findingSchema = z.strictObject({
  kind: z.enum(['damaged', 'changed', 'missing']),
  /** Relative to the data folder, or absolute where it lies elsewhere. */
  file: z.string(),
  reason: z.string(),
  /** Records of the log that cannot be relied upon, inclusive. */
  records: z.strictObject({ from: z.number(), to: z.number() }).exactOptional(),
  /** Where it was moved, relative to the data folder. */
  movedTo: z.string().exactOptional(),
});
export type Finding = z.output<typeof findingSchema>;

/** One reading of the whole data folder. */
export const dataCheckResultSchema = z.strictObject({
  /** Epoch milliseconds at its end. */
  at: z.number(),
  tookMs: z.number(),
  files: z.number(),
  bytes: z.number(),
  /** Records of the live log that were read. */
  records: z.number(),
  archives: z.number(),
  findings: z.array(findingSchema),
  /** Findings beyond those that are listed. */
  more: z.number().exactOptional(),
});
export type DataCheckResult = z.output<typeof dataCheckResultSchema>;

/** What one record lists: a disk that is failing damages everything, and the record is written to that disk. */
const MOST_FINDINGS = 40;

/** @returns the findings that a record lists, each once, and how many are left out */
export function bounded(findings: readonly Finding[]): Pick<DataCheckResult, 'findings' | 'more'> {
  const each = [...new Map(findings.map((finding) => [textOf(finding), finding])).values()];
  const left = each.length - MOST_FINDINGS;
  return { findings: each.slice(0, MOST_FINDINGS), ...(left > 0 && { more: left }) };
}

/** A finding as a sentence without its end. */
export function textOf({ kind, file, reason, records, movedTo }: Finding): string {
  const isMany = records !== undefined && records.from !== records.to;
  const range =
    records && (isMany ? `, records ${records.from} to ${records.to}` : `, record ${records.from}`);
  const moved = movedTo === undefined ? '' : `; it was moved to ${movedTo}`;
  return `${file}${range ?? ''} ${isMany ? 'are' : 'is'} ${kind}: ${reason}${moved}`;
}

/** The most findings that an alert names. */
const MOST_NAMED = 5;

/** What a person reads of findings. */
export function summaryOf({ findings, more = 0 }: Pick<DataCheckResult, 'findings' | 'more'>): string {
  const left = findings.length + more - MOST_NAMED;
  const rest = left > 0 ? `; and ${left} more, which \`holdfast status --json\` lists` : '';
  return `${findings.slice(0, MOST_NAMED).map(textOf).join('; ')}${rest}`;
}

/** Whether something is certainly damaged or gone, and not only changed by somebody. */
export function isDamage({ kind }: Finding): boolean {
  return kind !== 'changed';
}
