/** The checks of `holdfast doctor stack` that look at the stack's parts in the cluster. The running instance looks, because it has the cluster's account. */
import { z } from 'zod';
import { type KubernetesApi, KubernetesToken } from '../../../core/contracts/kubernetes.ts';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { StartedCollector } from '../active-keys.ts';
import type { CollectorOptions } from '../options.ts';
import { certificatesCheck } from './certificates.ts';
import { budgetCheck, membersCheck } from './document-database.ts';
import { replicasCheck } from './longhorn.ts';
import { unknown } from './unknown.ts';
import { volumesCheck } from './volumes.ts';

const PATH = '/collector/stack';
const LOOK_MS = 15_000;
/** The object of each check, by the check's name. */
const LOOKED_AT = {
  docdb_members: 'the members of the document database',
  docdb_budget: 'the disruption budget of the document database',
  volumes: "backups of the stack's volumes",
  volume_replicas: "replicas of the stack's volumes",
  certificates: 'certificates of the stack',
} as const;
type Part = keyof typeof LOOKED_AT;
const PARTS = Object.keys(LOOKED_AT) as Part[];
const request = z.strictObject({
  part: z.enum(['docdb_members', 'docdb_budget', 'volumes', 'volume_replicas', 'certificates']),
});

export function registerStackChecks(
  context: PluginContext<StartedCollector>,
  options: CollectorOptions,
): void {
  context.control((surface, { services: { find, clock } }) =>
    serveOperation(surface, PATH, request, ({ part }, { signal }) =>
      lookAt(
        part,
        options,
        find(KubernetesToken),
        clock.now(),
        AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]),
      ),
    ),
  );
  for (const part of PARTS) context.check(checkOf(part));
}

function checkOf(part: Part): CheckDefinition {
  const lookedAt = LOOKED_AT[part];
  return {
    name: `stack.${part}`,
    async run({ dataDir, signal }: CheckContext) {
      try {
        return await askInstance<CheckResult>(
          { dataDir, signal },
          PATH,
          { part },
          'it runs no collector plugin',
        );
      } catch (error) {
        if (!isCoded(error)) throw error;
        return unknown(lookedAt, `no instance here could look (${error.what})`, error.remedy);
      }
    },
  };
}

/**
 * Checks one part of the stack.
 *
 * @param cluster undefined where none is configured
 * @param now epoch milliseconds
 * @returns `ok` only when it was looked at, `unknown` with the reason when it could not be
 */
export async function lookAt(
  part: Part,
  { stack, tlsEndpoints, ui }: Pick<CollectorOptions, 'stack' | 'tlsEndpoints' | 'ui'>,
  cluster: KubernetesApi | undefined,
  now: number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = LOOKED_AT[part];
  if (part === 'certificates') {
    const { protocol, hostname, port } = new URL(ui?.url ?? 'http://none');
    const endpoints = [...(protocol === 'https:' ? [`${hostname}:${port || 443}`] : []), ...tlsEndpoints];
    const secrets = (stack?.certificateSecrets ?? []).map((name) => ({
      namespace: stack?.namespace ?? '',
      name,
    }));
    return certificatesCheck({ endpoints: [...new Set(endpoints)], secrets }, cluster, now, signal);
  }
  if (!stack) return unknown(lookedAt, 'the option `stack` names no objects in a cluster');
  if (!cluster) return unknown(lookedAt, 'no plugin provides a cluster');
  try {
    if (part === 'volumes') return await volumesCheck(cluster, stack, now, signal);
    if (part === 'volume_replicas') return await replicasCheck(cluster, stack, signal);
    const { documentDatabase } = stack;
    if (!documentDatabase) return unknown(lookedAt, '`stack.documentDatabase` names none');
    const check = part === 'docdb_members' ? membersCheck : budgetCheck;
    return await check(cluster, stack, documentDatabase, signal);
  } catch (error) {
    if (!isCoded(error)) throw error;
    return unknown(lookedAt, error.what, error.remedy);
  }
}
