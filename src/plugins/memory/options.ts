import { Cron } from 'croner';
import { z } from 'zod';
import { insecureOption, refusePlaintext } from '../../core/host/http/plaintext.ts';
import { secretReference } from '../../core/host/secrets/secret-reference.ts';
import { seedIds } from './backups/seed.ts';

function isCron(text: string): boolean {
  try {
    new Cron(text, { paused: true });
    return true;
  } catch {
    return false;
  }
}

function isHttp(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
}

const cron = z.string().refine(isCron, 'it must be a cron pattern, e.g. 30 2 * * *');
const bytes = z.int().min(1).optional();

const fields = z.strictObject({
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
  /** The store's API key may go to another machine over `http://`. */
  insecure: insecureOption,
  /** PEM file of the authority that signed the store's certificate. */
  caFile: z.string().min(1).optional(),
  /** The collection that is backed up. */
  collection: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, 'letters, digits, and . _ -')
    .default('memory'),
  /** Numbers in a vector of the collection, where the first note of an agent makes it without a vector of its own. */
  vectorSize: z.int().min(1).max(16_384).default(384),
  snapshots: z
    .strictObject({
      /** Cron pattern, UTC. */
      cron: cron.default('30 2 * * *'),
      /** How many of the newest are kept; the last good one always is. */
      keep: z.int().min(1).max(1_000).default(14),
      /** The usual size, bytes: four times more or less raises an alert. 225,000 for a store elsewhere, the previous snapshot's for the embedded one. */
      usualBytes: bytes,
    })
    .prefault({}),
  /** Points of the collection by which an operator recognises it; those that `backup seed` chose unless set. */
  seeds: z.strictObject({ ids: seedIds }).optional(),
  /** Copies of the embedded store's volume; the volume of a store elsewhere is copied by its cluster. */
  volumeCopies: z
    .strictObject({
      /** Cron pattern, UTC. */
      cron: cron.default('0 4 * * *'),
      keepDays: z.int().min(1).max(3_650).default(30),
      /** The usual size, bytes, e.g. 196_000_000. */
      usualBytes: bytes,
    })
    .prefault({}),
  /** An alert is raised when there was no good backup for this time. */
  staleHours: z.number().min(1).max(8_760).default(26),
  /** Whether a run that was missed, because the machine slept or was down, is made later or only reported. */
  missed: z.enum(['catch-up', 'report']).default('catch-up'),
  /** Names of a store's deployment and of the backups of its volume in the cluster. */
  deployment: z
    .strictObject({
      namespace: z.string().min(1).default('agent-memory'),
      name: z.string().min(1).default('qdrant'),
      claim: z.string().min(1).default('qdrant-data'),
      /** The schedule that backs its volume up, and the namespace of the backups. */
      backupSchedule: z.string().min(1).default('agent-memory-pvc-backup'),
      backupNamespace: z.string().min(1).default('velero'),
    })
    .prefault({}),
});

export const memoryOptions = fields.superRefine(({ url, insecure, apiKeyFile, apiKeyRef }, context) => {
  if (apiKeyFile === undefined && apiKeyRef === undefined) return;
  refusePlaintext(context, { url, insecure, credential: 'the API key' });
});

export type MemoryOptions = z.output<typeof memoryOptions>;
