/** The document database in the cluster: how many of its members are ready, and whether evictions leave enough of them. */
import { z } from 'zod';
import type { KubernetesApi, KubernetesObject } from '../../../core/contracts/kubernetes.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import type { StackOptions } from '../options.ts';
import { unknown } from './unknown.ts';

const STATEFUL_SET = { apiVersion: 'apps/v1', kind: 'StatefulSet' } as const;
const BUDGET = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' } as const;

const statefulSet = z.object({
  metadata: z.object({ generation: z.number().optional() }),
  spec: z.object({
    replicas: z.number().default(1),
    template: z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()).default({}) }).prefault({}),
    }),
  }),
  // The API leaves out counts that are zero.
  status: z
    .object({ readyReplicas: z.number().default(0), observedGeneration: z.number().optional() })
    .optional(),
});
const amount = z.union([z.number(), z.string().regex(/^\d+%$/)]);
const budget = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    minAvailable: amount.optional(),
    maxUnavailable: amount.optional(),
    selector: z
      .object({
        matchLabels: z.record(z.string(), z.string()).default({}),
        matchExpressions: z.array(z.unknown()).default([]),
      })
      .nullish(),
  }),
  status: z
    .object({
      currentHealthy: z.number(),
      desiredHealthy: z.number(),
      disruptionsAllowed: z.number(),
    })
    .optional(),
});

type Documents = NonNullable<StackOptions['documentDatabase']>;

/** A replica set elects and writes with more than half of its members. */
const majority = (members: number): number => Math.floor(members / 2) + 1;

/** Whether every member is ready (O29). @throws what the cluster throws */
export async function membersCheck(
  cluster: KubernetesApi,
  { namespace }: StackOptions,
  { statefulSet: name, members }: Documents,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = `the members of the document database (StatefulSet ${namespace}/${name})`;
  const found = await cluster.get(STATEFUL_SET, name, namespace, signal);
  if (!found) {
    const remedy = 'Correct `stack.documentDatabase.statefulSet`, or restore the document database.';
    return { state: 'fail', lookedAt, found: 'there is no such StatefulSet', remedy };
  }
  const { data } = statefulSet.safeParse(found);
  if (!data?.status) return unknown(lookedAt, 'the cluster does not say how many are ready');
  const { metadata, spec, status } = data;
  const { generation } = metadata;
  if (
    generation !== undefined &&
    status.observedGeneration !== undefined &&
    status.observedGeneration < generation
  ) {
    return unknown(lookedAt, 'it was changed, and its controller has not looked at it since');
  }
  const ready = status.readyReplicas;
  const needed = majority(members);
  const counts = `${ready} of ${members} members are ready, ${needed} are needed`;
  if (ready < needed) {
    const remedy = `Run kubectl -n ${namespace} get pods: the UI answers 5xx until ${needed} members are ready.`;
    return { state: 'fail', lookedAt, found: counts, remedy };
  }
  if (spec.replicas !== members) {
    const remedy = 'Scale the StatefulSet, or set `stack.documentDatabase.members` to their number.';
    return { state: 'warn', lookedAt, found: `${counts}; the StatefulSet asks for ${spec.replicas}`, remedy };
  }
  if (ready < members) {
    const remedy = `Run kubectl -n ${namespace} describe pods: find out why a member is not ready.`;
    return { state: 'warn', lookedAt, found: `${counts}; ${ready - needed} more may be lost`, remedy };
  }
  return { state: 'ok', lookedAt, found: counts };
}

/** Whether a disruption budget keeps as many members as are needed (O29). @throws what the cluster throws */
export async function budgetCheck(
  cluster: KubernetesApi,
  { namespace }: StackOptions,
  { statefulSet: name, members }: Documents,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = `the disruption budget of the document database in ${namespace}`;
  const { data: owner } = statefulSet.safeParse(await cluster.get(STATEFUL_SET, name, namespace, signal));
  if (!owner) return unknown(lookedAt, `there is no StatefulSet ${name} whose pods it would protect`);
  const { labels } = owner.spec.template.metadata;
  const { objects, whole } = await cluster.list(BUDGET, { namespace }, signal);
  if (!whole)
    return unknown(lookedAt, `only the first ${objects.length} budgets of the namespace could be read`);
  const chosen = objects.map((each) => selects(each, labels));
  const [found] = chosen.filter((each) => typeof each === 'object');
  if (!found) {
    if (chosen.includes('unreadable'))
      return unknown(lookedAt, 'a budget selects its pods by expressions, which are not read here');
    const remedy = `Create a PodDisruptionBudget with minAvailable ${majority(members)} for the pods of ${name}.`;
    return {
      state: 'fail',
      lookedAt,
      found: 'none protects its pods: a drain may evict every member',
      remedy,
    };
  }
  return judgeBudget(found, members, lookedAt);
}

function judgeBudget(
  { metadata, spec, status }: z.output<typeof budget>,
  members: number,
  lookedAt: string,
): CheckResult {
  const needed = majority(members);
  const kept = keptBy(spec, members);
  const rule =
    spec.minAvailable === undefined
      ? `maxUnavailable ${spec.maxUnavailable ?? 1}`
      : `minAvailable ${spec.minAvailable}`;
  const text = `${metadata.name} (${rule}) keeps ${kept} of ${members} members`;
  if (kept < needed) {
    const remedy = `Set its minAvailable to ${needed}.`;
    return { state: 'fail', lookedAt, found: `${text}, and ${needed} are needed`, remedy };
  }
  if (!status) return unknown(lookedAt, `${text}; the cluster does not say how many are healthy`);
  const { currentHealthy, desiredHealthy, disruptionsAllowed } = status;
  const health = `${text}; ${currentHealthy} are healthy, ${disruptionsAllowed} may be evicted now`;
  if (currentHealthy < desiredHealthy) {
    return {
      state: 'warn',
      lookedAt,
      found: health,
      remedy: 'Let the members become ready before a node is drained.',
    };
  }
  return { state: 'ok', lookedAt, found: health };
}

/** @returns how many members an eviction must leave */
function keptBy({ minAvailable, maxUnavailable }: z.output<typeof budget>['spec'], members: number): number {
  // The API rounds percentages up, and takes maxUnavailable 1 where neither is set.
  const count = (value: number | string): number =>
    typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) / 100) * members);
  return minAvailable === undefined ? Math.max(0, members - count(maxUnavailable ?? 1)) : count(minAvailable);
}

function selects(
  object: KubernetesObject,
  labels: Readonly<Record<string, string>>,
): z.output<typeof budget> | 'unreadable' | undefined {
  const { data } = budget.safeParse(object);
  if (!data) return 'unreadable';
  const { selector } = data.spec;
  // Without a selector it selects no pods.
  if (!selector) return undefined;
  const agrees = Object.entries(selector.matchLabels).every(([key, value]) => labels[key] === value);
  if (!agrees) return undefined;
  return selector.matchExpressions.length > 0 ? 'unreadable' : data;
}
