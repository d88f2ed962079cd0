import type { ArrivedMessage } from '../../src/core/contracts/cluster.ts';
import type { Logger } from '../../src/core/host/logging/logger.ts';
import { type Clock, systemClock } from '../../src/core/kernel/clock.ts';
import { Asks } from '../../src/plugins/cluster/messages/asks.ts';
import { type ArrivedState, EveryHost } from '../../src/plugins/cluster/messages/every-host.ts';
import { HolderMessages } from '../../src/plugins/cluster/messages/holder.ts';
import type { SharedPlace } from '../../src/plugins/cluster/messages/shared-order.ts';
import type { NatsLink } from '../../src/plugins/cluster/nats/link.ts';
import { Beats } from '../../src/plugins/cluster/presence/beats.ts';
import { openLink, silent } from './cluster.ts';

import type { Scope } from './scope.ts';

export interface HostWish {
  /** Name of the cluster. */
  readonly name: string;
  readonly replicas?: number;
  readonly version?: string;
  readonly protocol?: number;
  readonly place?: SharedPlace | undefined;
  readonly withinMs?: number;
  readonly deliver?: (message: ArrivedMessage) => void | Promise<void>;
  readonly take?: (message: ArrivedMessage) => void | Promise<void>;
  /** A successor knows of what it took. */
  readonly known?: () => void | Promise<void>;
  /** The host goes on without NATS. */
  readonly isAlone?: boolean;
  readonly pollMs?: number;
  /** Of the stream of messages to every host. */
  readonly maxBytes?: number;
  /** Messages to every host do not reach it as they are sent: it has to read them. */
  readonly isDeaf?: boolean;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

let clusters = 0;

/** A name that no other test uses. */
export function clusterName(): string {
  clusters += 1;
  return `c${process.pid}-${clusters}`;
}

/** What arrived at a host, without what differs from run to run. */
export interface Arrivals {
  readonly messages: ArrivedMessage[];
  readonly states: ArrivedState[];
  readonly taken: ArrivedMessage[];
  readonly broken: string[];
  /** Who wanted states, and who has sent them. */
  readonly exchanged: string[];
  /** When each message arrived, by its correlation. */
  readonly at: Map<string, number>;
  place?: SharedPlace | undefined;
  nameTaken?: Error;
}

export interface MessageHost extends Arrivals {
  readonly host: string;
  readonly link: NatsLink;
  readonly beats: Beats;
  readonly everyHost: EveryHost;
  readonly holder: HolderMessages;
  readonly asks: Asks;
  send(correlation: string, payload?: string): Promise<void>;
  stop(): Promise<void>;
}

/** Everything that one host sends and hears, with a connection of its own; stopped when the test ends. */
export async function openHost(
  t: Scope,
  servers: string | readonly string[],
  host: string,
  wish: HostWish,
): Promise<MessageHost> {
  const { name, replicas = 1, isAlone = false } = wish;
  const link = await openLink(t, servers, { name, host, isAlone });
  if (wish.isDeaf) {
    const listen = link.listen.bind(link);
    link.listen = (subject, deliver) =>
      subject === `hf.${name}.shared` ? () => {} : listen(subject, deliver);
  }
  const arrivals: Arrivals = {
    ...{ messages: [], states: [], taken: [], broken: [], exchanged: [], at: new Map() },
  };
  const common = { link, clock: wish.clock ?? systemClock, logger: wish.logger ?? silent, name, host };
  const everyHost = new EveryHost({
    ...{ ...common, replicas, place: wish.place },
    remember: (place) => {
      arrivals.place = place;
    },
    deliver: async (message) => {
      await wish.deliver?.(message);
      arrivals.messages.push(message);
      arrivals.at.set(message.correlation, performance.now());
    },
    onState: async (state) => void arrivals.states.push(state),
    onWanted: (round, from) => void arrivals.exchanged.push(`${from} wants ${round}`),
    onSent: (rounds, from) => void arrivals.exchanged.push(`${from} has sent ${rounds.join()}`),
    onBroken: (reason, first, last) => void arrivals.broken.push(`${reason} ${first} to ${last}`),
    onForeign: (sender, why) => void arrivals.broken.push(`foreign: ${sender?.from} ${why}`),
    ...(wish.pollMs !== undefined && { pollMs: wish.pollMs }),
    ...(wish.maxBytes !== undefined && { maxBytes: wish.maxBytes }),
    ...(wish.withinMs !== undefined && { withinMs: wish.withinMs }),
  });
  const beats = new Beats({
    ...{ ...common, replicas, version: wish.version ?? '1.0.0', protocol: wish.protocol ?? 1 },
    report: () => ({ shared: everyHost.place, lag: 0, holds: [] }),
    onHeard: ({ host: other, shared }) => everyHost.hearOf(other, shared),
    onNameTaken: (error) => {
      arrivals.nameTaken = error;
    },
  });
  const holder = new HolderMessages({
    ...{ ...common, beats },
    deliver: async (message) => {
      await wish.take?.(message);
      arrivals.taken.push(message);
    },
    known: async () => wish.known?.(),
    ...(wish.withinMs !== undefined && { withinMs: wish.withinMs }),
  });
  const asks = new Asks({ ...common, beats });
  const stop = async () => {
    beats.stop();
    asks.stop();
    holder.stop();
    await everyHost.stop();
  };
  t.teardown(stop);
  await beats.start();
  everyHost.start();
  asks.start();
  const send = (correlation: string, payload = '') =>
    everyHost.send({ topic: 'tests.topic', payload, correlation });
  return Object.assign(arrivals, { host, link, beats, everyHost, holder, asks, send, stop });
}
