import { createLogger } from '../../src/core/host/logging/logger.ts';
import type { Inheritance } from '../../src/core/kernel/actors/adoption.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import type { Takeover } from '../../src/machines/cluster/singleton.ts';
import type { LastHolder } from '../../src/plugins/cluster/leases/message.ts';
import type { NatsLink } from '../../src/plugins/cluster/nats/link.ts';
import { Handover } from '../../src/plugins/cluster/takeover/handover.ts';
import { silent } from './cluster.ts';
import { type MirroredHost, streamsOf } from './mirrored-host.ts';

export const TENURES = 'cluster.singleton/doors';

/** The record by which a host takes `doors` with the token of this number. */
export const taking = (number: number) => ({
  actor: TENURES,
  event: { type: 'TAKING', token: `i:${number}` },
});

/** A logger, and where the streams of hosts were read from by those that log to it: undefined stands for the begin. */
export function recordingReads() {
  const reads: (number | undefined)[] = [];
  const write = (line: string) => {
    const { msg, from } = JSON.parse(line);
    if (msg === 'cluster.mirror.inherited') reads.push(from);
  };
  return { reads, logger: createLogger({ destination: { write } }) };
}

/** Whose states the work begins with, of which actors, and from which messages of the streams on that was read. */
export async function inheritedBy(
  link: NatsLink,
  host: string,
  { log, states, outbox, told }: MirroredHost,
  last?: LastHolder,
  token = 'i:9',
  version = 1,
) {
  const takeovers: Takeover[] = [];
  const { reads, logger } = recordingReads();
  const rest = { takeovers, reads };
  let found = { source: 'it did not begin', actors: [] as string[], knocks: [] as unknown[], ...rest };
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    machines: { 'test.door': version },
    begin: async (_: unknown, inheritance?: Inheritance) => {
      const left = (inheritance?.states ?? []).toSorted((a, b) => (a.ref < b.ref ? -1 : 1));
      found = {
        source: inheritance ? `${inheritance.host}:${inheritance.seq}` : 'its own log',
        actors: left.map(({ ref }) => ref),
        knocks: left.map(({ ref, context }) => [ref, context]),
        ...rest,
      };
    },
    end: async () => {},
  };
  const actors = {
    knownStates: () => [...states.values()].filter(({ ref }) => ref.startsWith('test.door/')),
  };
  const handover = new Handover([doors], {
    ...{ services: { clock: systemClock, logger: silent, log, actors }, host, release: `0.${version}.0` },
    ...{ streams: { ...streamsOf(link), logger }, holder: { hold: () => {}, release: () => {} } },
    leases: { release: async () => {} },
    records: {
      singleton: (_, event) => {
        if (event.type === 'TOOK_OVER') found.takeovers.push(...event.takeovers);
        return 0;
      },
    },
    mirrored: (seq) => outbox.mirrored(seq),
    recorded: () => ({
      branches: told.orphans.map(({ after, to = 0, records = 0 }) => ({
        from: after + 1,
        to,
        count: records,
      })),
    }),
  });
  handover.gained({ singleton: 'doors', token, deadline: () => Infinity }, last);
  await handover.settled();
  const [outdated] = handover.outdated;
  return outdated ? { ...found, source: outdated.what } : found;
}
