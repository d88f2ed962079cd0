/**
 * The kinds of operators that Holdfast reads or makes, as their CustomResourceDefinitions describe them: Velero 1.17
 * (`velero.io/v1`, `velero.io/v2alpha1`), the snapshots of CSI (`snapshot.storage.k8s.io/v1`) and External Secrets 0.16 (`external-secrets.io/v1`). Only facts that concern us:
 * a field that is not here is refused, so add it with its type when Holdfast begins to use it.
 */
import { z } from 'zod';
import { LONGHORN_KINDS } from './longhorn.ts';

const time = z.iso.datetime({ offset: true }).nullable();
const names = z.array(z.string()).nullable();
const texts = z.record(z.string(), z.string());
const selector = z.strictObject({
  matchLabels: texts.optional(),
  matchExpressions: z
    .array(z.strictObject({ key: z.string(), operator: z.string(), values: z.array(z.string()).optional() }))
    .optional(),
});

/** Metadata is the same for every kind and the store's own business. */
function kindOf<T extends z.ZodType, S extends z.ZodType>(
  apiVersion: string,
  kind: string,
  spec: T,
  status: S,
) {
  return z.strictObject({
    apiVersion: z.literal(apiVersion),
    kind: z.literal(kind),
    metadata: z.looseObject({}),
    spec,
    status: status.optional(),
  });
}

const count = z.int().optional();
const progress = z.record(z.string(), z.int()).nullable().optional();

/** What a run of the operator says of itself, backup or restore. */
const run = {
  phase: z
    .enum([
      'New',
      'FailedValidation',
      'InProgress',
      'WaitingForPluginOperations',
      'WaitingForPluginOperationsPartiallyFailed',
      'Finalizing',
      'FinalizingPartiallyFailed',
      'Completed',
      'PartiallyFailed',
      'Failed',
      'Deleting',
    ])
    .optional(),
  startTimestamp: time.optional(),
  completionTimestamp: time.optional(),
  errors: count,
  warnings: count,
  failureReason: z.string().optional(),
  validationErrors: names.optional(),
  progress,
};

const scope = {
  includedNamespaces: names.optional(),
  excludedNamespaces: names.optional(),
  includedResources: names.optional(),
  excludedResources: names.optional(),
  includeClusterResources: z.boolean().nullable().optional(),
  labelSelector: selector.nullable().optional(),
};

const backup = kindOf(
  'velero.io/v1',
  'Backup',
  z
    .strictObject({
      ...scope,
      storageLocation: z.string().optional(),
      ttl: z.string().optional(),
      snapshotVolumes: z.boolean().nullable().optional(),
      defaultVolumesToFsBackup: z.boolean().nullable().optional(),
      volumeSnapshotLocations: z.array(z.string()).optional(),
      csiSnapshotTimeout: z.string().optional(),
      itemOperationTimeout: z.string().optional(),
      metadata: z.strictObject({ labels: texts.optional() }).optional(),
    })
    .optional(),
  z.strictObject({
    ...run,
    version: z.int().optional(),
    formatVersion: z.string().optional(),
    expiration: time.optional(),
    volumeSnapshotsAttempted: count,
    volumeSnapshotsCompleted: count,
    csiVolumeSnapshotsAttempted: count,
    csiVolumeSnapshotsCompleted: count,
    backupItemOperationsAttempted: count,
    backupItemOperationsCompleted: count,
    backupItemOperationsFailed: count,
  }),
);

const restore = kindOf(
  'velero.io/v1',
  'Restore',
  z.strictObject({
    ...scope,
    backupName: z.string().optional(),
    scheduleName: z.string().optional(),
    namespaceMapping: texts.optional(),
    restorePVs: z.boolean().nullable().optional(),
    preserveNodePorts: z.boolean().nullable().optional(),
    existingResourcePolicy: z.string().nullable().optional(),
    itemOperationTimeout: z.string().optional(),
  }),
  z.strictObject({
    ...run,
    phase: run.phase.unwrap().exclude(['Deleting']).optional(),
    restoreItemOperationsAttempted: count,
    restoreItemOperationsCompleted: count,
    restoreItemOperationsFailed: count,
  }),
);

const transfer = z.strictObject({
  phase: z
    .enum(['New', 'Accepted', 'Prepared', 'InProgress', 'Canceling', 'Canceled', 'Completed', 'Failed'])
    .optional(),
  path: z.string().optional(),
  snapshotID: z.string().optional(),
  message: z.string().optional(),
  node: z.string().optional(),
  startTimestamp: time.optional(),
  completionTimestamp: time.optional(),
  acceptedTimestamp: time.optional(),
  progress,
});

const podVolumeBackup = kindOf(
  'velero.io/v1',
  'PodVolumeBackup',
  z.strictObject({
    backupStorageLocation: z.string(),
    node: z.string(),
    pod: z.strictObject({
      apiVersion: z.string().optional(),
      kind: z.string().optional(),
      name: z.string().optional(),
      namespace: z.string().optional(),
      uid: z.string().optional(),
    }),
    repoIdentifier: z.string(),
    volume: z.string(),
    tags: texts.optional(),
    uploaderType: z.enum(['kopia', 'restic', '']).optional(),
    uploaderSettings: texts.nullable().optional(),
    cancel: z.boolean().optional(),
  }),
  transfer,
);

const dataUpload = kindOf(
  'velero.io/v2alpha1',
  'DataUpload',
  z.strictObject({
    backupStorageLocation: z.string(),
    operationTimeout: z.string(),
    snapshotType: z.string(),
    sourceNamespace: z.string(),
    sourcePVC: z.string(),
    csiSnapshot: z
      .strictObject({
        storageClass: z.string(),
        volumeSnapshot: z.string(),
        snapshotClass: z.string().optional(),
      })
      .nullable()
      .optional(),
    datamover: z.string().optional(),
    cancel: z.boolean().optional(),
  }),
  transfer,
);

const externalSecret = kindOf(
  'external-secrets.io/v1',
  'ExternalSecret',
  z
    .strictObject({
      refreshInterval: z.string().optional(),
      refreshPolicy: z.enum(['CreatedOnce', 'Periodic', 'OnChange']).optional(),
      secretStoreRef: z.strictObject({ name: z.string(), kind: z.string().optional() }).optional(),
      target: z
        .strictObject({ name: z.string().optional(), creationPolicy: z.string().optional() })
        .optional(),
      data: z
        .array(
          z.strictObject({
            secretKey: z.string(),
            remoteRef: z.strictObject({ key: z.string(), property: z.string().optional() }),
          }),
        )
        .optional(),
    })
    .optional(),
  z.strictObject({
    conditions: z
      .array(
        z.strictObject({
          type: z.string(),
          status: z.string(),
          reason: z.string().optional(),
          message: z.string().optional(),
          lastTransitionTime: time.optional(),
        }),
      )
      .optional(),
    refreshTime: time.optional(),
    syncedResourceVersion: z.string().optional(),
    binding: z.strictObject({ name: z.string().optional() }).optional(),
  }),
);

const volumeSnapshot = kindOf(
  'snapshot.storage.k8s.io/v1',
  'VolumeSnapshot',
  z.strictObject({
    source: z.strictObject({
      persistentVolumeClaimName: z.string().optional(),
      volumeSnapshotContentName: z.string().optional(),
    }),
    volumeSnapshotClassName: z.string().optional(),
  }),
  z.strictObject({
    boundVolumeSnapshotContentName: z.string().optional(),
    creationTime: time.optional(),
    readyToUse: z.boolean().optional(),
    restoreSize: z.string().optional(),
    error: z.strictObject({ message: z.string().optional(), time: time.optional() }).optional(),
  }),
);

/** By `apiVersion kind`. */
export const OPERATOR_KINDS: Readonly<Record<string, z.ZodType | undefined>> = {
  'velero.io/v1 Backup': backup,
  'velero.io/v1 Restore': restore,
  'velero.io/v1 PodVolumeBackup': podVolumeBackup,
  'velero.io/v2alpha1 DataUpload': dataUpload,
  'external-secrets.io/v1 ExternalSecret': externalSecret,
  'snapshot.storage.k8s.io/v1 VolumeSnapshot': volumeSnapshot,
  ...LONGHORN_KINDS,
};
