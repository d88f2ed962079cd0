import type { CheckContext, CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { EMPTY } from '../backups/effects.ts';

const STALE_MEND =
  'Run `holdfast backup snapshot`, and look at the alerts `memory.` of the log for why none was made.';
const FINDINGS_MEND =
  'Run `holdfast backup snapshot` and `holdfast restore drill --path a`; see that one retention alone prunes (docs/memory.md).';
const SETTINGS_MEND =
  "Put the object-store settings into the environment of the store's deployment, or its chart; without them recurring snapshots stop.";

/** `holdfast doctor memory`: what the running instance knows of its store and backups. */
export const memoryChecks: readonly CheckDefinition[] = [
  { name: 'memory.backups', run: backupsCheck },
  { name: 'memory.deployment', run: deploymentCheck },
];

function factsOf({ running }: CheckContext): Record<string, unknown> | undefined {
  const facts = running?.facts.memory;
  return isObject(facts) ? facts : undefined;
}

const unknown = (lookedAt: string): CheckResult => ({
  state: 'warn',
  lookedAt,
  found: 'not known: nothing runs here that speaks to a memory store',
  remedy: 'Start it with `holdfast start`.',
});

/** Whether backups go on: none that failed, none too old, and seeds to prove a restore by. */
function backupsCheck(context: CheckContext): CheckResult {
  const lookedAt = 'snapshots and volume copies of the memory store';
  const facts = factsOf(context);
  if (!facts) return unknown(lookedAt);
  const kinds = ['snapshot', 'volume'].map((kind) => facts[kind]).filter(isObject);
  if (kinds.length > 0 && kinds.every(({ fault, stale }) => fault === EMPTY && stale !== true)) {
    const remedy = 'Nothing, until something is stored: backups begin by themselves with the collection.';
    return { state: 'warn', lookedAt, found: EMPTY, remedy };
  }
  const wrong = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    if (!isObject(one)) return [];
    return [
      ...(one.stale === true ? [`no good ${kind} for too long`] : []),
      ...(typeof one.fault === 'string' ? [`the last ${kind}: ${one.fault}`] : []),
    ];
  });
  if (wrong.length > 0) return { state: 'fail', lookedAt, found: wrong.join('; '), remedy: STALE_MEND };
  const findings = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    return isObject(one) && Array.isArray(one.findings) ? one.findings : [];
  });
  if (findings.length > 0)
    return { state: 'warn', lookedAt, found: findings.join('; '), remedy: FINDINGS_MEND };
  if (facts.seeds === 0) {
    const remedy = 'Run `holdfast backup seed`: known points prove a restore.';
    return { state: 'warn', lookedAt, found: 'no seeds are kept in the collection', remedy };
  }
  return { state: 'ok', lookedAt, found: 'the last runs were good' };
}

/** Whether the store's deployment has what recurring snapshots need, where a cluster is configured. */
function deploymentCheck(context: CheckContext): CheckResult {
  const lookedAt = "the memory store's deployment in the cluster";
  const facts = factsOf(context);
  if (!facts) return unknown(lookedAt);
  const findings = facts.deployment;
  if (!Array.isArray(findings))
    return { state: 'ok', lookedAt, found: 'no cluster is configured, or not looked at yet' };
  if (findings.length === 0)
    return { state: 'ok', lookedAt, found: 'its settings and volume backups are good' };
  return { state: 'fail', lookedAt, found: findings.join('; '), remedy: SETTINGS_MEND };
}
