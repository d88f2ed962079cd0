import { allowanceOf, allows, counted, wantsMore } from '../../src/machines/gateway/allowance.ts';
import { granted, RPM, type Shared, type SliceWanted } from '../../src/machines/gateway/shares.ts';
import { Simulation } from './simulation.ts';
import { ModelStream } from './stream.ts';

const WINDOW_MS = 60_000;
const WINDOWS = 3;
/** Epoch milliseconds at which the simulation begins: a minute does, too. */
const BEGINNING = 28_333_333 * 60_000;

export interface LimitFigures {
  readonly grantsPerSecond: number;
  /** Of the calls that the limit allows, how many were admitted in a minute: on the average, and at most. */
  readonly admitted: number;
  readonly most: number;
}

/**
 * A limit for the cluster (calls a minute), spent in slices by the rules of the gateway itself. What a host asks for,
 * every host hears by the stream of messages to all hosts.
 *
 * @param demand how many times the limit clients ask for
 * @param busyHosts how many of the hosts they call
 */
export function limitFigures(
  { hosts, limit, demand, busyHosts }: { hosts: number; limit: number; demand: number; busyHosts: number },
  seed: number,
): LimitFigures {
  const simulation = new Simulation(seed);
  const stream = new ModelStream<SliceWanted>(simulation, hosts);
  const terms = { rpmLimit: limit };
  const shared: (Shared | undefined)[] = [];
  const folded = Array.from({ length: hosts }, () => 0);
  const admittedAt: number[] = [];
  const now = () => BEGINNING + simulation.now;

  stream.onSeen((here) => {
    for (let order = (folded[here] ?? 0) + 1; order <= stream.seenBy(here); order += 1) {
      const message = stream.message(order);
      if (!message) throw new Error(`there is no message ${order}`);
      const event = {
        ...({ type: 'SLICE_WANTED', at: now(), order, sentAt: BEGINNING + message.at, hosts } as const),
        ...{ host: String(message.author), here: String(here), wants: [message.body] },
      };
      shared[here] = granted({ terms, shared: shared[here], spend: 0 }, event).shared;
      folded[here] = order;
    }
  });
  const call = () => {
    simulation.after(-Math.log(1 - simulation.chance()) / ((limit * demand) / WINDOW_MS), call);
    const host = Math.floor(simulation.chance() * busyHosts);
    const [facts, at] = [{ host: String(host), hosts }, now()];
    const allowance = allowanceOf({ terms, shared: shared[host], spend: 0 }, facts, RPM, at, 1);
    if (!allowance) return;
    const isAdmitted = allows(allowance, 1);
    if (isAdmitted) admittedAt.push(simulation.now);
    const used = allowance.used + (isAdmitted ? 1 : 0);
    const asks = wantsMore({ ...allowance, used }, facts, at);
    if (asks) {
      const { began } = allowance;
      stream.append(
        host,
        { name: RPM, used, need: 1, ...(began !== undefined && { began }) },
        undefined,
        () => {},
      );
    }
    shared[host] = counted(
      { shared: shared[host], spend: 0 },
      facts,
      [{ allowance, amount: isAdmitted ? 1 : 0, asks }],
      at,
    );
  };
  call();
  simulation.run(WINDOWS * WINDOW_MS);
  const inMinute = Array.from({ length: WINDOWS }, () => 0);
  for (const at of admittedAt) {
    const minute = Math.floor(at / WINDOW_MS);
    inMinute[minute] = (inMinute[minute] ?? 0) + 1;
  }
  return {
    grantsPerSecond: stream.counts.appends / ((WINDOWS * WINDOW_MS) / 1_000),
    admitted: admittedAt.length / WINDOWS / limit,
    most: Math.max(...inMinute) / limit,
  };
}
