import type { StreamInfo } from '@nats-io/jetstream';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { counted } from '../../../core/host/terminal.ts';
import { isAway } from '../nats/replicas.ts';

/** An operation of a replica that is so far behind is not caught up in an instant. */
const LAGGING_MESSAGES = 1_000;

export const AFTER_THE_NEXT = 'with the next one that is lost, nothing is taken over and no log is mirrored.';

interface StreamCopies {
  readonly infos: readonly Pick<StreamInfo, 'config' | 'cluster'>[];
  /** Names of those that have no leader now. */
  readonly unanswered: readonly string[];
}

/**
 * @param streams at least one, with a leader or without
 * @param wanted copies of each
 * @param isClustered whether the server is one of several
 * @returns what is to be said of the copies of the streams
 */
export function copiesResult(
  { infos, unanswered }: StreamCopies,
  wanted: number,
  isClustered: boolean,
): Omit<CheckResult, 'lookedAt'> {
  const away = new Map<string, number>();
  /** Servers without which no stream lacks a quorum. */
  let lacking = 0;
  const problems = infos.flatMap(({ config, cluster }) => {
    const { name, num_replicas: has } = config;
    const copies = cluster?.replicas ?? [];
    const there = has - copies.filter(isAway).length;
    lacking = Math.max(lacking, Math.floor(has / 2) + 1 - there);
    const behind = copies.flatMap((replica) => {
      const { name: server, current, lag = 0 } = replica;
      if (isAway(replica)) away.set(server, (away.get(server) ?? 0) + 1);
      else if (!current || lag > LAGGING_MESSAGES)
        return [`${name} is behind on ${server} (${lag} messages)`];
      return [];
    });
    return [...(has < wanted ? [`${name} has ${has} of ${wanted} copies`] : []), ...behind];
  });
  const lost = [...away].map(
    ([server, copies]) =>
      `the server ${server} does not answer: ${counted(copies, 'copy is', 'copies are')} missing`,
  );
  const leaderless = unanswered.map((name) => `${name} has no leader`);
  const found = [...lost, ...leaderless, ...problems].join('; ');
  const names = [...away.keys()];
  if (lacking > 0) {
    const which = lacking === names.length ? names.join(' and ') : `${lacking} of ${names.join(', ')}`;
    const remedy = `Start ${which}: there is no quorum. Until ${counted(lacking, 'server is', 'servers are')} started, nothing is taken over and no log is mirrored.`;
    return { state: 'fail', found, remedy };
  }
  if (lost.length > 0) {
    const remedy = `Start ${names.join(' and ')} again: what is missing there comes by itself. Until then the others go on; ${AFTER_THE_NEXT}`;
    return { state: 'warn', found, remedy };
  }
  if (leaderless.length > 0) {
    const remedy =
      'An election takes up to 12 s: try again. If it stays, more than half of the servers do not reach each other.';
    return { state: 'warn', found, remedy };
  }
  if (problems.length > 0) {
    const remedy = 'Look at that server: its disk may be full, which shows nowhere else.';
    return { state: 'warn', found, remedy };
  }
  if (wanted < 3) {
    const where = isClustered ? 'on one of the servers' : 'on 1 server';
    const copies = `${counted(infos.length, 'stream has', 'streams have')} one copy, ${where}: the loss of that one stops every takeover`;
    const remedy =
      'Run three servers on machines that do not fail together, and name all of them in HOLDFAST_NATS_URL.';
    return { state: 'warn', found: copies, remedy };
  }
  return {
    state: 'ok',
    found: `${counted(infos.length, 'stream has', 'streams have')} ${wanted} copies, all caught up`,
  };
}
