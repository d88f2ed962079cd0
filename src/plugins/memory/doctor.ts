/** The checks of the memory store for `holdfast doctor`, and the hourly look at its deployment. */
import { z } from 'zod';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import type { MemoryStores } from '../../core/contracts/memory-store.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { deploymentChecked } from './backups/actor.ts';
import { BACKUP_PATHS } from './backups/answers.ts';
import { EMPTY_STORE } from './backups/effects.ts';
import type { Inspection } from './backups/inspect.ts';
import { type DeploymentSeen, lookAtDeployment } from './deployment.ts';
import type { MemoryOptions } from './options.ts';

const CHECK_MS = 30_000;
/** The check comes every hour; what is older says nothing of now. */
const OLD_MS = 2.5 * 3_600_000;
const deploymentFact = z.object({
  findings: z.array(z.string()),
  unseen: z.array(z.string()),
  at: z.string(),
  isOld: z.boolean(),
});
const STALE_REMEDY = 'Run `holdfast backup snapshot`; the alerts `memory.` in the log say why none was made.';
const UNREAD_REMEDY =
  'Run `holdfast backup snapshot`; a copy of the volume is made by its schedule. A store whose files lie elsewhere is proven by `holdfast restore drill`.';
const FINDINGS_REMEDY =
  'Run `holdfast backup snapshot` and `holdfast restore drill --path a`; make sure that only one retention prunes (docs/memory.md).';
const SETTINGS_REMEDY =
  "Put the object-store settings into the environment of the store's deployment, or its chart; without them recurring snapshots stop.";

/** What the running instance reports of it. A type and not an interface, because only types count as JSON for the compiler. */
export type DeploymentFact = {
  readonly findings: readonly string[];
  readonly unseen: readonly string[];
  /** When the cluster was asked, ISO 8601. */
  readonly at: string;
  /** Two hourly checks have not come since. */
  readonly isOld: boolean;
};

/** Checks the store's version and its deployment in the cluster every hour, and keeps the findings. */
export class DeploymentChecks {
  /** Version that the live store reported last. */
  version: string | undefined;
  /** Undefined until a cluster was asked. */
  #seen: (DeploymentSeen & { readonly at: number }) | undefined;
  readonly #services: Services;
  readonly #options: MemoryOptions;
  readonly #stores: MemoryStores;

  constructor(services: Services, options: MemoryOptions, stores: MemoryStores) {
    this.#services = services;
    this.#options = options;
    this.#stores = stores;
  }

  async run(): Promise<void> {
    const { clock, find, bus } = this.#services;
    this.version = (await this.#stores.live.about().catch(() => undefined))?.version ?? this.version;
    const cluster = this.#stores.kind === 'remote' ? find(KubernetesToken) : undefined;
    if (!cluster) return;
    const at = clock.now();
    try {
      const signal = AbortSignal.timeout(CHECK_MS);
      const { findings, unread, unseen } = await lookAtDeployment(cluster, this.#options, at, signal);
      this.#seen = { findings, unseen: [...unread, ...unseen], at };
      bus.publish(deploymentChecked, { findings: [...unread, ...findings] });
    } catch (error) {
      // An error of the cluster is no finding about the deployment: the machine gets no event.
      this.#seen = { findings: [], unseen: [isCoded(error) ? error.what : String(error)], at };
    }
  }

  /** What was seen last, for doctor; undefined until a cluster was asked. */
  get seen(): DeploymentFact | undefined {
    if (!this.#seen) return undefined;
    const { at, ...seen } = this.#seen;
    const isOld = this.#services.clock.now() - at > OLD_MS;
    return { ...seen, at: new Date(at).toISOString(), isOld };
  }
}

/** The checks of `holdfast doctor memory`, from what the running instance reports of its store and backups. */
export const memoryChecks: readonly CheckDefinition[] = [
  { name: 'memory.backups', run: backupsCheck },
  { name: 'memory.deployment', run: deploymentCheck },
];

function factsOf({ running }: CheckContext): Record<string, unknown> | undefined {
  const facts = running?.facts.memory;
  return isObject(facts) ? facts : undefined;
}

const notRunning = (lookedAt: string): CheckResult => ({
  state: 'unknown',
  lookedAt,
  found: 'not checked, because no instance with a memory store runs here',
  remedy: 'Start it with `holdfast start`.',
});

/** Whether backups are made: none failed, none is too old, and there are seeds to prove a restore by. */
async function backupsCheck(context: CheckContext): Promise<CheckResult> {
  const lookedAt = 'snapshots and volume copies of the memory store';
  const facts = factsOf(context);
  if (!facts) return notRunning(lookedAt);
  const kinds = ['snapshot', 'volume'].map((kind) => facts[kind]).filter(isObject);
  if (kinds.length > 0 && kinds.every(({ fault, stale }) => fault === EMPTY_STORE && stale !== true)) {
    const remedy = 'Nothing to do: backups begin by themselves once something is stored.';
    return { state: 'warn', lookedAt, found: EMPTY_STORE, remedy };
  }
  const wrong = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    if (!isObject(one)) return [];
    return [
      ...(one.stale === true ? [`no good ${kind} for too long`] : []),
      ...(typeof one.fault === 'string' ? [`the last ${kind}: ${one.fault}`] : []),
    ];
  });
  if (wrong.length > 0) return { state: 'fail', lookedAt, found: wrong.join('; '), remedy: STALE_REMEDY };
  const findings = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    return isObject(one) && Array.isArray(one.findings) ? one.findings : [];
  });
  if (findings.length > 0)
    return { state: 'warn', lookedAt, found: findings.join('; '), remedy: FINDINGS_REMEDY };
  if (facts.seeds === 0) {
    const remedy = 'Run `holdfast backup seed`: fixed points prove a restore.';
    return { state: 'warn', lookedAt, found: 'no seeds are kept in the collection', remedy };
  }
  return inspectionResult(lookedAt, await inspected(context));
}

/** The instance reads the newest backups again: that a run was good does not say that its file still is. */
async function inspected({ dataDir, signal }: CheckContext): Promise<Inspection> {
  try {
    return await askInstance<Inspection>(
      { dataDir, signal },
      BACKUP_PATHS.inspect,
      {},
      'it keeps no memory store',
    );
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { seen: [], faults: [], unseen: [error.what.replace(/\.$/, '')] };
  }
}

/** `ok` only of backups that were read. */
export function inspectionResult(lookedAt: string, { seen, faults, unseen }: Inspection): CheckResult {
  if (faults.length > 0) {
    return { state: 'fail', lookedAt, found: [...faults, ...unseen].join('; '), remedy: STALE_REMEDY };
  }
  if (unseen.length > 0 || seen.length === 0) {
    const found = `not checked: ${unseen.join('; ') || 'there is no backup'}`;
    return { state: 'unknown', lookedAt, found: [found, ...seen].join('; '), remedy: UNREAD_REMEDY };
  }
  return { state: 'ok', lookedAt, found: `the last runs were good; ${seen.join('; ')}` };
}

/** Whether the store's deployment has what recurring snapshots need, where a cluster is configured. */
function deploymentCheck(context: CheckContext): CheckResult {
  const lookedAt = "the memory store's deployment in the cluster";
  const facts = factsOf(context);
  if (!facts) return notRunning(lookedAt);
  const { data: seen } = deploymentFact.safeParse(facts.deployment);
  if (!seen) {
    const found =
      'not checked: no cluster is configured, the store is embedded, or the hourly check has not run yet';
    const remedy =
      'Configure the cluster of a store elsewhere (docs/memory.md); an embedded one has no deployment.';
    return { state: 'unknown', lookedAt, found, remedy };
  }
  const { findings, unseen, at, isOld } = seen;
  const text = [...findings, ...unseen].join('; ');
  if (isOld) {
    const found = `not checked since ${at}${text === '' ? '' : `; then: ${text}`}`;
    return { state: 'unknown', lookedAt, found, remedy: 'The hourly check has not run: see its log.' };
  }
  if (findings.length > 0) return { state: 'fail', lookedAt, found: text, remedy: SETTINGS_REMEDY };
  if (unseen.length > 0) {
    const remedy =
      "Give the cluster's account the rights that docs/memory.md lists, and see `holdfast doctor kubernetes`.";
    return { state: 'unknown', lookedAt, found: `not checked: ${text}`, remedy };
  }
  return { state: 'ok', lookedAt, found: `its settings and volume backups are good, at ${at}` };
}
