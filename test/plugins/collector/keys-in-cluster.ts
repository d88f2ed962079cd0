import { randomUUID } from 'node:crypto';
import { kubernetes } from '../../../src/plugins/kubernetes/index.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { ClusterApi, type PodRun, type Thing } from '../../support/kubernetes/index.ts';
import type { Scope } from '../../support/scope.ts';
import { effectiveYaml } from './effective.ts';
import type { Options } from './rig.ts';

/** What runs in the stack's namespace, and which keys are where. */
export interface KeysInCluster {
  readonly api: ClusterApi;
  readonly others: ReturnType<typeof secretsFolder>[];
  readonly options: Options;
  /** The key in the collector's effective config. */
  collector: string;
  /** What a command in a pod does in place of what it should. */
  mishap: (pod: string, command: readonly string[]) => PodRun | 'no program' | undefined;
  /** Puts a value in the synced Secret. @param changedAt when the API says that it was changed */
  sync(key: string, changedAt?: Date): void;
  /** Starts the pods of the workloads anew: their variable has what the Secret has by now. */
  restart(startedAt?: Date): void;
}

const NAMESPACE = 'stack';
const seconds = (at: Date) => at.toISOString().replace(/\.\d+/, '');

/** A collector that a UI manages, a synced Secret, and the two scrapers with the key in their environment. */
export async function keysInCluster(t: Scope, dir: string, timeoutMs = 10_000): Promise<KeysInCluster> {
  const api = await ClusterApi.start(t);
  const { store } = api;
  let synced = '';
  const variables = new Map<string, string>();
  const here: KeysInCluster = {
    api,
    others: [secretsFolder(), kubernetes({ kubeconfig: api.kubeconfig(dir), timeoutMs })],
    options: {
      collectorPods: { namespace: NAMESPACE, labels: { app: 'collector' }, everyMs: 100 },
      refresh: {
        namespace: NAMESPACE,
        syncedSecret: { name: 'otel-ingest' },
        secretSync: { name: 'otel-ingest' },
        deployments: ['scraper'],
        daemonSets: ['scraper-node'],
      },
    },
    collector: randomUUID(),
    mishap: () => undefined,
    sync(key, changedAt = new Date()) {
      synced = key;
      const data = { INGEST_TOKEN: Buffer.from(key).toString('base64') };
      const old = store.find('Secret', 'otel-ingest', NAMESPACE);
      const managedFields = [{ manager: 'external-secrets', operation: 'Update', time: seconds(changedAt) }];
      const metadata = { ...old?.metadata, name: 'otel-ingest', namespace: NAMESPACE, managedFields };
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata, data };
      if (old) store.replace(secret);
      else store.create(secret);
    },
    restart(startedAt = new Date()) {
      for (const workload of ['scraper', 'scraper-node']) {
        const name = `${workload}-0`;
        if (store.find('Pod', name, NAMESPACE)) store.delete('Pod', name, NAMESPACE);
        store.create(podOf(name, workload, startedAt));
        variables.set(name, synced);
      }
    },
  };
  store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  for (const [kind, name] of [
    ['Deployment', 'scraper'],
    ['DaemonSet', 'scraper-node'],
  ] as const) {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name, image: 'collector:1' }] } };
    const spec = { selector: { matchLabels: labels }, template };
    store.create({ apiVersion: 'apps/v1', kind, metadata: { name, namespace: NAMESPACE }, spec });
  }
  store.create({
    apiVersion: 'external-secrets.io/v1',
    kind: 'ExternalSecret',
    metadata: { name: 'otel-ingest', namespace: NAMESPACE },
    spec: {},
  });
  store.create(podOf('collector-0', 'collector', new Date()));
  api.run = ({ metadata: { name } }, command) => {
    const mishap = here.mishap(name, command);
    if (mishap) return mishap === 'no program' ? undefined : mishap;
    if (command[0] === 'cat') return { output: effectiveYaml({ tokens: [here.collector] }) };
    if (command[0] !== 'printenv' || command[1] !== 'INGEST_TOKEN') return { exitCode: 1 };
    return { output: `${variables.get(name)}\n` };
  };
  return here;
}

function podOf(name: string, app: string, startedAt: Date): Thing {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, labels: { app } },
    spec: { containers: [{ name: app, image: 'collector:1' }] },
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          name: app,
          image: 'collector:1',
          imageID: '',
          ready: true,
          restartCount: 0,
          state: { running: { startedAt: seconds(startedAt) } },
        },
      ],
    },
  };
}
