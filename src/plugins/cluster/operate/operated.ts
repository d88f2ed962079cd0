import type { Cluster } from '../../../core/contracts/cluster.ts';
import { takeAdoptedNote } from '../../../core/host/adopted-note.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { version } from '../../../core/kernel/version.ts';
import { hostActor, singletonActor } from '../actors.ts';
import { announceHeld } from './held-since.ts';
import { answerOperations, type OperatedCluster } from './operations.ts';

/** This host in the cluster, as far as it is shown and operated. */
export interface Joined
  extends Pick<Cluster, 'name' | 'host' | 'standing' | 'ask' | 'onAsked'>,
    Pick<OperatedCluster, 'clock' | 'link' | 'shared' | 'leases' | 'leftBecause' | 'outdated'> {
  readonly beats: OperatedCluster['beats'] &
    Parameters<typeof announceHeld>[0] & { forget(host: string): void };
  readonly outbox: OperatedCluster['outbox'] & { orphanExported(number: number, at: number): Promise<void> };
}

/** Makes this host one that commands, health and console ask, and answers the operations of other hosts. */
export function operated(
  joined: Joined,
  { actors, dataDir }: Pick<Services, 'actors' | 'dataDir'>,
): OperatedCluster {
  const { name, host, clock, link, beats, shared, leases, outbox } = joined;
  const cluster: OperatedCluster = {
    ...{ name, host, version, clock, link, beats, shared, leases, outbox },
    standing: () => joined.standing(),
    get leftBecause() {
      return joined.leftBecause;
    },
    get outdated() {
      return joined.outdated;
    },
    heldSince: announceHeld(beats, () => actors.list(singletonActor), host),
    ask: (question, body, timeoutMs) => joined.ask(question, body, timeoutMs),
    onAsked: (question, answer) => joined.onAsked(question, answer),
    forget(other, act) {
      beats.forget(other);
      actors.send(hostActor, other, { type: 'FORGOTTEN', at: clock.now(), ...act });
    },
    record: {
      singleton: (singleton, event) => void actors.send(singletonActor, singleton, event),
      host: (other, event) => void actors.send(hostActor, other, event),
    },
    hasStopped: (other) => actors.get(hostActor, other)?.value.presence === 'left',
    exported: (number, at) => outbox.orphanExported(number, at),
  };
  answerOperations(cluster);
  const adopted = takeAdoptedNote(dataDir);
  if (adopted) actors.send(hostActor, host, { type: 'ADOPTED', ...adopted });
  return cluster;
}
