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

export const collectorOptions = z.strictObject({
  /** The collector's `effective.yaml`; without it Holdfast is its own collector. */
  effectiveConfig: z.string().min(1).optional(),
  lookEveryMs: z.int().min(20).max(60_000).default(1_000),
  /** Where the keys of the stack and of the gateway lie in the secrets store. */
  secretsPath: path.default('observability'),
  gatewaySecretsPath: path.default('gateway'),
  /** The UI that keeps the team's ingest key. */
  ui: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /** File (mode 0600) with a bearer token of its API: then a rotation requests the new key from it. */
      tokenFile: z.string().min(1).optional(),
      regeneratePath: z.string().startsWith('/').default('/api/team/apiKey'),
    })
    .optional(),
  /** Producers outside of the cluster that a person updates, e.g. `router-edge`. */
  externalProducers: names,
  /** How a refresh is forced in the cluster: what is annotated, and what is restarted. */
  refresh: z
    .strictObject({
      namespace: z.string().min(1).max(63),
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

export type CollectorOptions = z.output<typeof collectorOptions>;
