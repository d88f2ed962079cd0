import { Cron } from 'croner';
import { z } from 'zod';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const cron = z.string().refine((pattern) => {
  try {
    return new Cron(pattern, { paused: true }).nextRun() !== null;
  } catch {
    return false;
  }
}, 'it must be a cron pattern, e.g. 0 5 * * 0');

const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    'it must be the REST port of an instance, e.g. http://127.0.0.1:7333',
  )
  .refine((text) => !/[@?#]/.test(text), 'it must hold no user, query or fragment');

const name = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'it must be a name of the cluster');

/** Where the store and its backups are in the cluster. */
const clusterPlaces = z.strictObject({
  /** Namespace of the live store. */
  namespace: name.default('agent-memory'),
  /** Its volume. */
  claim: name.default('qdrant-data'),
  /** Whose backups path B restores. */
  schedule: name.default('agent-memory-pvc-backup'),
  /** Where backups and restores are objects. */
  backupNamespace: name.default('velero'),
  /** Encrypted and replicated. */
  storageClass: name.default('encrypted-replicated'),
  /** Image of the scratch instance; that of the live store unless set. */
  image: z.string().min(1).optional(),
  /** The live store as a pod sees it; its service unless set. */
  liveUrl: origin.optional(),
});

/** Times are milliseconds. */
export const restoreOptions = z.strictObject({
  /** When drills run by themselves (UTC), e.g. `{ a: '0 5 * * 0' }`. */
  schedule: z.strictObject({ a: cron.optional(), b: cron.optional() }).default({}),
  /** An alert is raised when a scheduled path (path a when none is) had no drill for this time; never unless set. */
  overdueMs: z.int().min(1).optional(),
  /** An instance for drills, in the place of one that is made in the cluster. */
  scratchUrl: origin.optional(),
  cluster: clusterPlaces.prefault({}),
  /** Ids that a summary lists of each kind of difference. */
  listed: z.int().min(1).max(100).default(50),
  /** Until a scratch instance is ready. */
  readyMs: z
    .int()
    .min(10)
    .default(2 * MINUTE_MS),
  /** Between two polls of a scratch instance or a restore. */
  pollMs: z.int().min(1).default(1_000),
  recoverMs: z
    .int()
    .min(10)
    .default(30 * MINUTE_MS),
  verifyMs: z
    .int()
    .min(10)
    .default(30 * MINUTE_MS),
  cleanMs: z
    .int()
    .min(10)
    .default(3 * MINUTE_MS),
  /** Until a clean-up that failed is tried again; it doubles up to an hour. */
  retryMs: z.int().min(1).default(MINUTE_MS),
  /** After which any instance of Holdfast may remove a scratch instance in the cluster. */
  expiryMs: z
    .int()
    .min(1)
    .default(2 * HOUR_MS),
});

export type RestoreOptions = z.output<typeof restoreOptions>;
export type ClusterPlaces = z.output<typeof clusterPlaces>;
