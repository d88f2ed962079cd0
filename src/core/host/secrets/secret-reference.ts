import { z } from 'zod';

const PART = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}';
const REFERENCE = new RegExp(`^${PART}(?:/${PART}){0,7}#${PART}$`);

/** A secret by its place, `<path>#<property>`: what configurations may hold in the place of the secret itself. */
export const secretReference: z.ZodType<string, string> = z
  .string()
  .regex(REFERENCE, 'it must name a secret as <path>#<property>, e.g. servers/docs#token');

/** @returns the two parts of what `secretReference` has accepted */
export function parseSecretReference(reference: string): {
  readonly path: string;
  readonly property: string;
} {
  const [path = '', property = ''] = reference.split('#');
  return { path, property };
}
