import { ClusterToken } from '../../core/contracts/cluster.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { hostActor, singletonActor } from './actors.ts';
import { ClusterError } from './errors.ts';
import { ClusterKey } from './keys.ts';
import { contributePage } from './operate/console-page.ts';
import { clusterChecks } from './operate/diagnosis.ts';
import { registerHealth } from './operate/health.ts';
import { operated } from './operate/operated.ts';
import { registerOperations } from './operate/operations.ts';
import { clusterOptions } from './options.ts';

/**
 * Several hosts as one system over NATS JetStream (docs/cluster.md): the log of each is mirrored on a stream (`mirror/`), singletons run under
 * leases (`leases/`, `handover.ts`, `succession.ts`), and messages reach every host in one order (`messages/`). `system.ts` puts them together.
 *
 * Imports core, bus and its machines; no other plugin.
 */

/**
 * The plugin `cluster`: lets several hosts work as one system.
 *
 * @example cluster({ servers: 'nats://127.0.0.1:4222', keyFile: '/etc/holdfast/cluster-key', host: 'attic' })
 * @public
 */
export const cluster = definePlugin({
  name: 'cluster',
  about: {
    area: 'Several hosts',
    what: 'lets several hosts work as one system over NATS',
    docs: 'cluster.md',
  },
  options: clusterOptions,
  env: {
    HOLDFAST_NATS_URL: 'servers',
    HOLDFAST_CLUSTER_KEY_FILE: 'keyFile',
    HOLDFAST_CLUSTER_NAME: 'name',
    HOLDFAST_CLUSTER_HOST: 'host',
    HOLDFAST_CLUSTER_LEASE_MS: 'leaseMs',
    HOLDFAST_NATS_CREDENTIALS_FILE: 'credentialsFile',
    HOLDFAST_NATS_CA_FILE: 'tls.caFile',
  },
  variables: {
    HOLDFAST_NATS_URL: 'The servers of NATS, separated by commas; several hosts are one system then.',
    HOLDFAST_CLUSTER_KEY_FILE: 'File (mode 0600) with the key of the cluster, the same on every host.',
    HOLDFAST_CLUSTER_NAME: 'Name of the cluster; `holdfast` unless set.',
    HOLDFAST_CLUSTER_HOST: 'Name of this host in the cluster; that of the machine unless set.',
    HOLDFAST_CLUSTER_LEASE_MS:
      'How long a host holds what runs on one host at a time after it was last heard, milliseconds.',
    HOLDFAST_NATS_CREDENTIALS_FILE:
      'Credentials of a user of NATS, a file of mode 0600: `.creds`, or the seed of an nkey.',
    HOLDFAST_NATS_CA_FILE:
      'Authority of the certificates of those servers, where the system does not know it.',
  },
  errors: ClusterError,
  provides: [ClusterToken],
  fingerprintKey: ({ keyFile }) => ClusterKey.open(keyFile).fingerprints,
  async start(services, options) {
    const { ClusterSystem } = await import('./system.ts');
    const system = await ClusterSystem.join(services, options);
    return { system, operated: operated(system, services) };
  },
  register(context, options) {
    context.actor(singletonActor);
    context.actor(hostActor);
    context.provide(ClusterToken, ({ system }) => system);
    registerOperations(context, (started) => started.operated);
    registerHealth(context, (started) => started.operated);
    contributePage(context, (started) => started.operated);
    for (const check of clusterChecks(options)) context.check(check);
    context.onStop(({ system }) => system.leave());
  },
});
