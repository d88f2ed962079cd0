/** Dates of the backups of the stack's volumes (O29): made by Velero or Longhorn, or as snapshots of the claims. */
import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { StackOptions, VolumeBackup } from '../options.ts';
import { longhornBackups } from './longhorn.ts';
import { unknown, worst } from './unknown.ts';

const HOUR_MS = 3_600_000;
const VOLUMES = {
  columnarDatabase: 'columnar database',
  documentDatabase: 'document database',
  coordinationKeeper: 'coordination keeper',
} as const;
const REMEDY = 'Look at the backup operator: a volume without a good backup is lost with its disk.';

const names = z.array(z.string()).nullish();
const veleroBackup = z.object({
  spec: z.object({ includedNamespaces: names, excludedNamespaces: names }).prefault({}),
  status: z
    .object({
      phase: z.string().optional(),
      completionTimestamp: z.string().nullish(),
      errors: z.number().default(0),
      warnings: z.number().default(0),
    })
    .optional(),
});
const snapshot = z.object({
  spec: z.object({ source: z.object({ persistentVolumeClaimName: z.string().optional() }) }),
  status: z
    .object({
      readyToUse: z.boolean().optional(),
      creationTime: z.string().nullish(),
      error: z.unknown().optional(),
    })
    .optional(),
});

interface Assessment {
  readonly state: CheckResult['state'];
  readonly text: string;
}

/**
 * The age of the newest good backup of each volume.
 *
 * @param now epoch milliseconds
 */
export async function volumesCheck(
  cluster: Cluster,
  stack: StackOptions,
  now: number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = `backups of the stack's volumes in ${stack.namespace}`;
  const seen: Assessment[] = [];
  for (const [volume, name] of Object.entries(VOLUMES)) {
    const ways = stack.volumes[volume as keyof typeof VOLUMES];
    if (!ways)
      seen.push({
        state: 'unknown',
        text: `${name}: \`stack.volumes.${volume}\` does not say how it is backed up`,
      });
    for (const way of ways ?? []) {
      const { state, text } = await look(cluster, stack, way, now, signal);
      seen.push({ state, text: `${name}: ${text}` });
    }
  }
  const state = worst(seen.map((each) => each.state));
  const text = seen.map((each) => each.text).join('; ');
  if (state === 'unknown') return unknown(lookedAt, text);
  const found = `${text}; all of them crash-consistent, none a backup by the database itself`;
  return state === 'ok' ? { state, lookedAt, found } : { state, lookedAt, found, remedy: REMEDY };
}

async function look(
  cluster: Cluster,
  stack: StackOptions,
  way: VolumeBackup,
  now: number,
  signal: AbortSignal,
): Promise<Assessment> {
  try {
    if (way.by === 'velero') {
      const { at, whole } = await newestOfSchedule(cluster, stack.namespace, way, signal);
      return assess(`Velero's schedule ${way.schedule}`, at, whole, stack.staleHours, now);
    }
    if (way.by === 'longhorn') return await longhornBackups(cluster, stack, way.claims, now, signal);
    const { dates, whole } = await newestOfClaims(cluster, stack.namespace, way.claims, signal);
    const each = way.claims.map((claim) =>
      assess(`snapshot of ${claim}`, dates.get(claim), whole, stack.staleHours, now),
    );
    return { state: worst(each.map(({ state }) => state)), text: each.map(({ text }) => text).join(', ') };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { state: 'unknown', text: error.what };
  }
}

/** @param whole whether all backups were seen: a newer one may be among the others, good or bad */
function assess(
  what: string,
  at: number | undefined,
  whole: boolean,
  staleHours: number,
  now: number,
): Assessment {
  if (!whole) return { state: 'unknown', text: `${what}: there are more than could be read` };
  if (at === undefined) return { state: 'fail', text: `${what}: there is no good one` };
  const hours = Math.floor((now - at) / HOUR_MS);
  if (now - at > staleHours * HOUR_MS)
    return { state: 'fail', text: `${what}: the newest good one is ${hours} h old` };
  return { state: 'ok', text: `${what}: ${Math.max(0, hours)} h ago` };
}

/** @returns `at`: epoch milliseconds of the newest backup that completed and covers the namespace */
async function newestOfSchedule(
  cluster: Cluster,
  namespace: string,
  { schedule, namespace: where }: Extract<VolumeBackup, { by: 'velero' }>,
  signal: AbortSignal,
): Promise<{ at: number | undefined; whole: boolean }> {
  const labels = { 'velero.io/schedule-name': schedule };
  const { objects, whole } = await cluster.list(
    { apiVersion: 'velero.io/v1', kind: 'Backup' },
    { namespace: where, labels },
    signal,
  );
  const at = newest(
    objects.flatMap((object) => {
      const { spec, status } = veleroBackup.safeParse(object).data ?? {};
      const isGood = status?.phase === 'Completed' && status.errors === 0 && status.warnings === 0;
      const { includedNamespaces, excludedNamespaces } = spec ?? {};
      const isIncluded =
        !includedNamespaces?.length || includedNamespaces.some((name) => name === '*' || name === namespace);
      return isGood && isIncluded && !excludedNamespaces?.includes(namespace)
        ? [status.completionTimestamp]
        : [];
    }),
  );
  return { at, whole };
}

async function newestOfClaims(
  cluster: Cluster,
  namespace: string,
  claims: readonly string[],
  signal: AbortSignal,
): Promise<{ dates: ReadonlyMap<string, number>; whole: boolean }> {
  const kind = { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot' };
  const { objects, whole } = await cluster.list(kind, { namespace }, signal);
  const listed = objects.flatMap((object) => snapshot.safeParse(object).data ?? []);
  const dates = new Map(
    claims.flatMap((claim) => {
      const at = newest(
        listed
          .filter(({ spec, status }) => {
            const isGood = status?.readyToUse === true && (status.error ?? null) === null;
            return isGood && spec.source.persistentVolumeClaimName === claim;
          })
          .map(({ status }) => status?.creationTime),
      );
      return at === undefined ? [] : [[claim, at] as const];
    }),
  );
  return { dates, whole };
}

function newest(times: readonly (string | null | undefined)[]): number | undefined {
  const dates = times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time));
  return dates.length === 0 ? undefined : Math.max(...dates);
}
