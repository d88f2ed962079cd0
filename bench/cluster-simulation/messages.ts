import { quantile } from '../measure.ts';
import { type Delay, Simulation } from './simulation.ts';

/** From a publisher to a subscriber, measured of a server with little to do, milliseconds. */
const PROPAGATION: Delay = { p50: 3.5, p99: 8 };
/** What sending one message to one subscriber occupies a server with, and reading and checking it a host: assumed. */
const SEND_MS = 0.005;
const CHECK_MS = 0.015;
const SERVERS = 3;
/** A beat every 500 ms, and messages to every host, of the whole cluster. */
const BEATS_A_SECOND = 2;
const SHARED_A_SECOND = 10;
const SIMULATED_MS = 10_000;

/** What beats and messages to every host cost a cluster, and how late they come. */
export interface MessageFigures {
  /** Deliveries a second, all hosts together. */
  readonly deliveries: number;
  /** How much of one processor each server spends on sending, and each host on what it receives. */
  readonly server: number;
  readonly host: number;
  /** Until a message to every host has reached one of them, and the last one, milliseconds. */
  readonly p50: number;
  readonly lastP99: number;
}

export function messageFigures(hosts: number, seed: number): MessageFigures {
  const simulation = new Simulation(seed);
  const busyUntil = Array.from({ length: SERVERS }, () => 0);
  const each: number[] = [];
  const last: number[] = [];
  let deliveries = 0;

  /** Every server sends it to its own hosts, one after another, behind what it sends already. */
  const publish = (isMeasured: boolean) => {
    let latest = 0;
    for (let server = 0; server < SERVERS; server += 1) {
      const subscribers = Math.ceil((hosts - server) / SERVERS);
      if (subscribers <= 0) continue;
      const start = Math.max(simulation.now, busyUntil[server] ?? 0);
      busyUntil[server] = start + subscribers * SEND_MS;
      deliveries += subscribers;
      if (!isMeasured) continue;
      for (let index = 1; index <= subscribers; index += 1) {
        const took = start - simulation.now + index * SEND_MS + simulation.delay(PROPAGATION);
        each.push(took);
        latest = Math.max(latest, took);
      }
    }
    if (isMeasured) last.push(latest);
  };
  const every = (ms: number, isMeasured: boolean) => {
    const again = () => {
      publish(isMeasured);
      simulation.after(ms, again);
    };
    simulation.after(simulation.between(0, ms), again);
  };
  for (let host = 0; host < hosts; host += 1) every(1_000 / BEATS_A_SECOND, false);
  every(1_000 / SHARED_A_SECOND, true);
  simulation.run(SIMULATED_MS);

  const perSecond = deliveries / (SIMULATED_MS / 1_000);
  return {
    deliveries: perSecond,
    server: (perSecond / SERVERS) * (SEND_MS / 1_000),
    host: (perSecond / hosts) * (CHECK_MS / 1_000),
    p50: quantile(each, 0.5),
    lastP99: quantile(last, 0.99),
  };
}
