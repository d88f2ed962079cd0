import { z } from 'zod';

/**
 * A label as it is kept and looked for: two that look the same are one (G14). Composed characters are one character,
 * white space of any kind is one space, and there is none around it.
 */
export const canonical = (label: string): string => label.normalize('NFC').trim().replace(/\s+/g, ' ');

/**
 * Whether a key bears it: those of a log from before may have theirs as it was written.
 *
 * @param wanted canonical
 */
export function isCalled(label: string | undefined, wanted: string): boolean {
  return label === wanted || (label !== undefined && canonical(label) === wanted);
}

/** Alias or owner of a key; shown in spans, reports and logs. */
export const label = z
  .string()
  .max(512) // before it is made canonical: nobody has us do that with a megabyte
  .overwrite(canonical)
  .min(1)
  .max(128)
  // Neither what can't be shown nor what is drawn as nothing.
  .regex(/^[^\p{C}\p{Default_Ignorable_Code_Point}]*$/u, 'it has characters that can not be shown')
  .refine((text) => !/\bsk-/.test(text), 'it looks like a key; labels are shown everywhere');

/** What somebody looks for by it. */
export const wantedLabel = z.string().max(512).overwrite(canonical);
