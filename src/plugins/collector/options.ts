import { z } from 'zod';
import { rotationDefaults } from '../../machines/collector/key-rotation-rules.ts';

const path = z
  .string()
  .regex(
    /^[A-Za-z0-9_][\w.-]{0,63}(?:\/[A-Za-z0-9_][\w.-]{0,63}){0,7}$/,
    'it must be a path such as home/stack',
  );
const ms = (usual: number, least = 20) =>
  z
    .int()
    .min(least)
    .max(30 * 86_400_000)
    .default(usual);
const names = z.array(z.string().min(1).max(253)).max(50).default([]);

const objectName = z.string().min(1).max(253);

/** How a volume is backed up: by a schedule of Velero, by snapshots of its claims, or by Longhorn. */
const volumeBackup = z.discriminatedUnion('by', [
  z.strictObject({
    by: z.literal('velero'),
    schedule: objectName,
    /** Namespace of the backups. */
    namespace: objectName.default('velero'),
  }),
  z.strictObject({ by: z.literal('snapshots'), claims: z.array(objectName).min(1).max(50) }),
  z.strictObject({ by: z.literal('longhorn'), claims: z.array(objectName).min(1).max(50) }),
]);

/** Names of the stack's objects in the cluster, so that `doctor stack` can look at them. */
const stack = z.strictObject({
  namespace: objectName,
  documentDatabase: z
    .strictObject({ statefulSet: objectName, members: z.int().min(1).max(50).default(3) })
    .optional(),
  volumes: z
    .strictObject({
      columnarDatabase: z.array(volumeBackup).min(1).max(5).optional(),
      documentDatabase: z.array(volumeBackup).min(1).max(5).optional(),
      coordinationKeeper: z.array(volumeBackup).min(1).max(5).optional(),
    })
    .prefault({}),
  /** Where Longhorn keeps its own objects. */
  longhorn: z.strictObject({ namespace: objectName.default('longhorn-system') }).prefault({}),
  /** A volume without a good backup for so long fails. */
  staleHours: z.number().min(1).max(8_760).default(26),
  /** Secrets of the type `kubernetes.io/tls`, in the same namespace. */
  certificateSecrets: z.array(objectName).max(50).default([]),
});
export type StackOptions = z.output<typeof stack>;
export type VolumeBackup = z.output<typeof volumeBackup>;

const namespace = z.string().min(1).max(63);

const options = z.strictObject({
  /** The collector's `effective.yaml` on this host; without it and `collectorPods` Holdfast is its own collector. */
  effectiveConfig: z.string().min(1).optional(),
  /** The collector's pods, in which its effective config is read by a command: the account needs `create` on `pods/exec`. */
  collectorPods: z
    .strictObject({
      namespace,
      labels: z.record(z.string().min(1), z.string()).refine((labels) => Object.keys(labels).length > 0),
      container: objectName.optional(),
      file: z.string().startsWith('/').default('/etc/otel/supervisor-data/effective.yaml'),
      /** How often it is read, milliseconds. */
      everyMs: z.int().min(20).max(3_600_000).default(60_000),
    })
    .optional(),
  lookEveryMs: z.int().min(20).max(60_000).default(1_000),
  /** Where the keys of the stack and of the gateway lie in the secrets store. */
  secretsPath: path.default('observability'),
  gatewaySecretsPath: path.default('gateway'),
  /** The UI that keeps the team's ingest key. */
  ui: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /**
       * File (mode 0600) with the e-mail address of a user of the UI in its first line and the password in its second: then
       * a rotation logs in and requests the new key. Without it a person makes the key.
       */
      loginFile: z.string().min(1).optional(),
      /** Where its API is, relative to `url`; unless set, it is looked for at `/api`, where the UI passes it on, and at the root. */
      apiPath: z
        .string()
        .regex(/^(?:\/[\w.-]+)*$/)
        .optional(),
    })
    .optional(),
  /** Producers outside of the cluster that a person updates, e.g. `router-edge`. */
  externalProducers: names,
  /** How a refresh is forced in the cluster: what is annotated, and what is restarted. */
  refresh: z
    .strictObject({
      namespace,
      /** The Secret that the secrets store is synced to, and its property with the ingest key. */
      syncedSecret: z
        .strictObject({ name: objectName, property: objectName.default('INGEST_TOKEN') })
        .optional(),
      /** The variable in which the workloads have the key. */
      variable: z
        .string()
        .regex(/^[A-Za-z_]\w*$/)
        .default('INGEST_TOKEN'),
      secretSync: z
        .strictObject({
          apiVersion: z.string().default('external-secrets.io/v1'),
          kind: z.string().default('ExternalSecret'),
          name: z.string().min(1).max(253),
          annotation: z.string().default('force-sync'),
        })
        .optional(),
      deployments: names,
      daemonSets: names,
    })
    .optional(),
  /** Where the stack's parts are in the cluster; `holdfast doctor stack` looks at them. */
  stack: stack.optional(),
  /** `host:port` of TLS endpoints whose certificates `doctor stack` looks at, besides that of the UI's address. */
  tlsEndpoints: z
    .array(z.string().regex(/^[\w.[\]:-]+:\d{1,5}$/, 'it must be host:port'))
    .max(50)
    .default([]),
  rotation: z
    .strictObject({
      adoptMs: ms(rotationDefaults.adoptMs),
      lookMs: ms(rotationDefaults.lookMs),
      refreshMs: ms(rotationDefaults.refreshMs),
      overlapMs: ms(rotationDefaults.overlapMs),
      retryMs: ms(rotationDefaults.retryMs),
    })
    .prefault({}),
});

export const collectorOptions = options.refine(
  ({ effectiveConfig, collectorPods }) => effectiveConfig === undefined || collectorPods === undefined,
  'give one of effectiveConfig and collectorPods',
);

export type CollectorOptions = z.output<typeof collectorOptions>;
