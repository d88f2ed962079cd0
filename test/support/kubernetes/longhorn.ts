/**
 * The objects of Longhorn (`longhorn.io/v1beta2`), as its published API types describe them: the fields that concern us, each of
 * which a server takes as absent too. A field that is not here is refused.
 */
import { z } from 'zod';

const text = z.string().optional();
const count = z.int().optional();
const flag = z.boolean().optional();
const texts = z.record(z.string(), z.string());
/** Longhorn keeps most of its times as texts, '' for none. */
const timeText = z.union([z.literal(''), z.iso.datetime()]).optional();
const time = z.iso.datetime({ offset: true }).nullable().optional();

/** As of `Condition`: its times are texts too. */
const conditions = z
  .array(
    z.strictObject({
      type: z.string(),
      status: z.string(),
      reason: text,
      message: text,
      lastProbeTime: text,
      lastTransitionTime: text,
    }),
  )
  .nullable()
  .optional();

function kindOf<T extends z.ZodType, S extends z.ZodType>(kind: string, spec: T, status: S) {
  return z.strictObject({
    apiVersion: z.literal('longhorn.io/v1beta2'),
    kind: z.literal(kind),
    metadata: z.looseObject({}),
    spec: spec.optional(),
    status: status.optional(),
  });
}

const volume = kindOf(
  'Volume',
  z.strictObject({
    size: z.string().regex(/^\d+$/).optional(),
    numberOfReplicas: count,
    backupTargetName: text,
    frontend: z.enum(['blockdev', 'iscsi', 'nvmf', '']).optional(),
    accessMode: z.enum(['rwo', 'rwop', 'rwx']).optional(),
    dataEngine: z.enum(['v1', 'v2']).optional(),
    nodeID: text,
  }),
  z.strictObject({
    ownerID: text,
    state: z.enum(['', 'creating', 'attached', 'detached', 'attaching', 'detaching', 'deleting']).optional(),
    robustness: z.enum(['', 'healthy', 'degraded', 'faulted', 'unknown']).optional(),
    currentNodeID: text,
    kubernetesStatus: z
      .strictObject({
        pvName: text,
        pvStatus: text,
        namespace: text,
        pvcName: text,
        lastPVCRefAt: timeText,
        lastPodRefAt: timeText,
      })
      .optional(),
    conditions,
    lastBackup: text,
    lastBackupAt: timeText,
    lastDegradedAt: timeText,
    actualSize: count,
  }),
);

const replica = kindOf(
  'Replica',
  z.strictObject({
    volumeName: text,
    volumeSize: z.string().regex(/^\d+$/).optional(),
    nodeID: text,
    diskID: text,
    engineName: text,
    active: flag,
    healthyAt: timeText,
    failedAt: timeText,
    rebuildRetryCount: count,
  }),
  z.strictObject({
    ownerID: text,
    instanceManagerName: text,
    currentState: z
      .enum(['running', 'suspended', 'stopped', 'error', 'starting', 'stopping', 'unknown', 'terminated'])
      .optional(),
    evictionRequested: flag,
    conditions,
  }),
);

const backup = kindOf(
  'Backup',
  z.strictObject({
    snapshotName: text,
    syncRequestedAt: time,
    labels: texts.optional(),
    backupMode: z.enum(['full', 'incremental', '']).optional(),
  }),
  z.strictObject({
    ownerID: text,
    state: z.enum(['', 'Pending', 'InProgress', 'Completed', 'Error', 'Unknown']).optional(),
    progress: count,
    error: text,
    url: text,
    snapshotName: text,
    snapshotCreatedAt: timeText,
    backupCreatedAt: timeText,
    size: text,
    volumeName: text,
    volumeSize: text,
    backupTargetName: text,
    labels: texts.nullable().optional(),
    messages: texts.nullable().optional(),
    lastSyncedAt: time,
  }),
);

const backupTarget = kindOf(
  'BackupTarget',
  z.strictObject({
    backupTargetURL: text,
    credentialSecret: text,
    pollInterval: text,
    syncRequestedAt: time,
  }),
  z.strictObject({ ownerID: text, available: flag, conditions, lastSyncedAt: time }),
);

const recurringJob = kindOf(
  'RecurringJob',
  z.strictObject({
    name: text,
    groups: z.array(z.string()).optional(),
    task: z
      .enum([
        'snapshot',
        'snapshot-force-create',
        'snapshot-cleanup',
        'snapshot-delete',
        'backup',
        'backup-force-create',
        'filesystem-trim',
        'system-backup',
      ])
      .optional(),
    cron: text,
    retain: count,
    concurrency: count,
    labels: texts.optional(),
    parameters: texts.optional(),
  }),
  z.strictObject({ ownerID: text, executionCount: count }),
);

/** By `apiVersion kind`. */
export const LONGHORN_KINDS: Readonly<Record<string, z.ZodType | undefined>> = {
  'longhorn.io/v1beta2 Volume': volume,
  'longhorn.io/v1beta2 Replica': replica,
  'longhorn.io/v1beta2 Backup': backup,
  'longhorn.io/v1beta2 BackupTarget': backupTarget,
  'longhorn.io/v1beta2 RecurringJob': recurringJob,
};
