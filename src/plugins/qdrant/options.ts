import { z } from 'zod';
import { secretReference } from '../../core/adapters/secrets-store.ts';

function isHttp(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
}

export const qdrantOptions = z.strictObject({
  /** A memory store elsewhere; without it, the embedded one. */
  url: z
    .string()
    .refine(isHttp, 'it must be the REST port of a memory store, e.g. http://qdrant.agent-memory:6333')
    .refine((text) => !/[@?#]/.test(text), 'it must hold no user, query or fragment')
    .optional(),
  /** File (mode 0600) with the store's API key, read at each call. */
  apiKeyFile: z.string().min(1).optional(),
  /** Or its place in the secrets store, `<path>#<property>`. */
  apiKeyRef: secretReference.optional(),
  /** PEM file of the authority that signed the store's certificate. */
  caFile: z.string().min(1).optional(),
  /** The collection that is kept. */
  collection: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, 'letters, digits, and . _ -')
    .default('memory'),
});

export type QdrantOptions = z.output<typeof qdrantOptions>;
