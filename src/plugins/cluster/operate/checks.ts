import { setTimeout as delay } from 'node:timers/promises';
import type { StreamInfo } from '@nats-io/jetstream';
import { createLogger } from '../../../core/host/logging/logger.ts';
import type { CheckContext, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { counted, duration } from '../../../core/host/terminal.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import { ClusterKey } from '../keys.ts';
import { logStreams, namesOf } from '../mirror/incarnations.ts';
import { NatsLink } from '../nats/link.ts';
import { isLed } from '../nats/replicas.ts';
import { parseServers } from '../nats/servers.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamUnavailable, StreamUnknown } from '../nats/stream-errors.ts';
import { CLUSTER_REPLICAS } from '../nats/stream-settings.ts';
import type { ClusterOptions } from '../options.ts';
import { AFTER_THE_NEXT, copiesResult } from './copies.ts';

const CONNECT_MS = 3_000;
/** How long a stream may lack a leader before a check fails: less than a check may take. */
const ELECTION_MS = 6_000;
const ROUNDS = 200;
/** A clock that differs by more makes times in the merged story misleading. */
const CLOCK_MS = 1_000;
/** Of what a stream may hold. A host trims its stream at nine tenths. */
const NEARLY_FULL = 0.95;

const dependencies = { clock: systemClock, logger: createLogger({ level: 'silent' }) };

type Look = (link: NatsLink) => Promise<Omit<CheckResult, 'lookedAt'>>;

const looks: Readonly<Record<string, (link: NatsLink, options: ClusterOptions) => ReturnType<Look>>> = {
  permissions,
  replicas,
  streams,
  clock,
  race,
};

/** Makes one of the checks. It has connections of its own. */
export async function lookAt(
  name: string,
  options: ClusterOptions,
  context: CheckContext,
): Promise<CheckResult> {
  if (name === 'reachable') return reachable(options);
  if (name === 'instance') return instance(context);
  const look = looks[name];
  if (!look) throw new Error(`there is no check ${name}`);
  return withLink(options, name, (link) => look(link, options));
}

/** Each server by itself, so that one that is missing is named. */
async function reachable(options: ClusterOptions): Promise<CheckResult> {
  const servers = parseServers(options.servers) ?? [];
  const lookedAt = servers.map(({ shown }) => shown).join(', ');
  const looks = await Promise.all(
    servers.map(async ({ shown, address }) => {
      const link = await openLink({ ...options, servers: address });
      try {
        const isUp = await link.ready(CONNECT_MS);
        return { shown, version: isUp ? link.serverVersion : undefined, problem: link.problem };
      } finally {
        await link.close();
      }
    }),
  );
  const missing = looks.filter(({ version }) => version === undefined);
  const versions = [...new Set(looks.flatMap(({ version }) => version ?? []))].join(', ');
  const problems = missing.map(({ problem, shown }) => problem ?? shown).join('; ');
  if (missing.length === looks.length) {
    const remedy = 'Check that the servers run and let this host in: addresses, TLS authority, user.';
    return { state: 'fail', lookedAt, found: `no server lets this host in: ${problems}`, remedy };
  }
  if (missing.length > 0) {
    const [found, isQuorum] = [
      `${problems}; the others answer (version ${versions})`,
      missing.length < looks.length / 2,
    ];
    const remedy = isQuorum
      ? `Start that server again. Until then the others go on; ${AFTER_THE_NEXT}`
      : 'Start them again: without more than half of the servers nothing is taken over, and no log is mirrored.';
    return { state: isQuorum ? 'warn' : 'fail', lookedAt, found, remedy };
  }
  return {
    state: 'ok',
    lookedAt,
    found: `${counted(looks.length, 'server answers', 'servers answer')}, version ${versions}`,
  };
}

/** Does what a host does, in a stream of its own, and asks for what it must not be able to do. */
async function permissions(link: NatsLink, options: ClusterOptions): ReturnType<Look> {
  const stream = await checkStream(link, options);
  const { seq } = await stream.append('a check');
  await stream.get(seq);
  await LinearStream.names(link, `hf.${options.name}.>`);
  // Running hosts listen to other subjects.
  const subject = `hf.${options.name}.check.answers`;
  const end = link.subscribe(subject, (message) => message.respond('yes'));
  try {
    await link.request(subject, 'may answers come?', CONNECT_MS);
  } finally {
    end();
  }
  if (!(await mayDelete(link, options)))
    return { state: 'ok', found: 'it may do what a host needs, and may not delete streams' };
  return {
    state: 'warn',
    found: 'it may do what a host needs, and also delete streams',
    remedy: 'Give it the permissions of deploy/nats/accounts.conf and no others.',
  };
}

/** Asks to delete a stream that is not there: whoever may not gets no answer. */
async function mayDelete(link: NatsLink, { name }: ClusterOptions): Promise<boolean> {
  try {
    await link.connected().request(`$JS.API.STREAM.DELETE.HF_${name}_NONE`, '', { timeout: 1_000 });
    return true;
  } catch {
    return false;
  }
}

async function replicas(link: NatsLink, options: ClusterOptions): ReturnType<Look> {
  const wanted = options.replicas ?? (link.isClustered ? CLUSTER_REPLICAS : 1);
  const own = await ownStreams(link, options);
  if (own.infos.length + own.unanswered.length === 0) return NO_STREAMS;
  return copiesResult(own, wanted, link.isClustered);
}

/** Streams of logs that a later incarnation took the place of. */
async function leftStreams(link: NatsLink, { name: cluster }: ClusterOptions): Promise<readonly string[]> {
  const hosts = await logStreams({ link, cluster, ...dependencies });
  return [...hosts].flatMap(([host, all]) =>
    all.slice(0, -1).map((incarnation) => namesOf(cluster, host, incarnation).stream),
  );
}

const NO_STREAMS = {
  state: 'unknown',
  found: 'the cluster has no stream yet',
  remedy: 'Start its first host, which makes them.',
} as const;

/** The settings without which a stream does not keep what is relied upon. */
async function streams(link: NatsLink, options: ClusterOptions): ReturnType<Look> {
  const { infos, unanswered } = await ownStreams(link, options);
  if (infos.length + unanswered.length === 0) return NO_STREAMS;
  const wrong = infos.flatMap(({ config }) => {
    const { name, discard, max_bytes: most, allow_direct: direct, storage, max_age: age } = config;
    const isLog = name.startsWith(`HF_${options.name}_LOG_`);
    const isKept = isLog || name.endsWith('_LEDGER') || name.endsWith('_SHARED');
    return [
      ...(isLog && discard !== 'new' ? [`${name} discards old records`] : []),
      ...(most <= 0 ? [`${name} has no limit of bytes`] : []),
      ...(direct ? [`${name} answers reads from any replica`] : []),
      ...(isKept && storage !== 'file' ? [`${name} is kept in memory`] : []),
      ...(age > 0 ? [`${name} forgets by age`] : []),
    ];
  });
  if (wrong.length > 0) {
    const remedy = 'Set it as docs/cluster.md has it (`nats stream edit`).';
    return { state: 'fail', found: wrong.join('; '), remedy };
  }
  const full = infos.filter(
    ({ config, state }) => config.discard === 'new' && state.bytes > NEARLY_FULL * config.max_bytes,
  );
  const text = full.map(
    ({ config, state }) => `${config.name} is ${Math.round((100 * state.bytes) / config.max_bytes)} % full`,
  );
  if (text.length > 0) {
    const remedy = 'Raise maxStreamBytes: its host could not trim it.';
    return { state: 'warn', found: text.join('; '), remedy };
  }
  if (unanswered.length > 0)
    return { state: 'unknown', found: `${unanswered.join(', ')}: no leader answers`, remedy: 'Try again.' };
  const left = await leftStreams(link, options);
  if (left.length > 0) {
    const found = `${left.join(', ')}: replaced by a later one, and still with its room reserved`;
    const remedy =
      'Delete it (`nats stream rm`, as a user who may) once `cluster status` of its host says that everything is on the stream.';
    return { state: 'warn', found, remedy };
  }
  return { state: 'ok', found: `${counted(infos.length, 'stream is', 'streams are')} set as needed` };
}

/** The leader stamps what it stores; half of the way there and back is the best guess of when. */
async function clock(link: NatsLink, options: ClusterOptions): ReturnType<Look> {
  const stream = await checkStream(link, options);
  const [sent, began] = [Date.now(), performance.now()];
  const { seq } = await stream.append('what time is it?');
  const took = performance.now() - began;
  const stored = await stream.get(seq);
  if (!stored) return { state: 'unknown', found: 'the message is gone already', remedy: 'Try again.' };
  return clockResult(stored.at - (sent + took / 2), took / 2);
}

/** @param differs how far the leader's clock is ahead, milliseconds @param giveOrTake how exactly that is known */
export function clockResult(differs: number, giveOrTake: number): Omit<CheckResult, 'lookedAt'> {
  const text = `the clock of the stream’s leader is ${duration(Math.abs(differs))} ${differs > 0 ? 'ahead' : 'behind'}, give or take ${duration(giveOrTake)}`;
  if (Math.abs(differs) + giveOrTake <= CLOCK_MS) return { state: 'ok', found: text };
  const remedy =
    'Synchronise the clocks (NTP), without steps. Leases do not depend on it; times in the story do.';
  if (Math.abs(differs) - giveOrTake > CLOCK_MS) return { state: 'warn', found: text, remedy };
  return { state: 'unknown', found: `${text}: too slow an answer to tell`, remedy: 'Try again.' };
}

/** Two writers expect the same end of a stream: one must lose, every time. Some versions of the server let both win. */
async function race(link: NatsLink, options: ClusterOptions): ReturnType<Look> {
  const rival = await openLink(options);
  try {
    if (!(await rival.ready(CONNECT_MS))) throw new Error(rival.problem);
    return await raceOf(await checkStream(link, options), await checkStream(rival, options));
  } finally {
    await rival.close();
  }
}

type Raced = Pick<LinearStream, 'append' | 'last'>;

/** @returns `fail` as soon as both writers are told that theirs was the next message */
export async function raceOf(one: Raced, other: Raced): ReturnType<Look> {
  let { seq: last } = await one.last();
  for (let round = 1; round <= ROUNDS; round += 1) {
    const results = await Promise.allSettled(
      [one, other].map((stream) => stream.append(`round ${round}`, { expectedLast: last })),
    );
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.seq] : []));
    for (const result of results)
      if (result.status === 'rejected' && !(result.reason instanceof StreamConflict)) throw result.reason;
    if (won.length > 1) {
      const found = `in round ${round} of ${ROUNDS} two writers were told that they were the only one`;
      return { state: 'fail', found, remedy: 'Do not run several hosts on these servers: update NATS.' };
    }
    // Somebody else who checks at the same time may have been first.
    last = won[0] ?? (await one.last()).seq;
  }
  return { state: 'ok', found: `in ${ROUNDS} rounds of two writers one lost each time` };
}

/** What the running instance says of itself. */
function instance({ running, dataDir }: CheckContext): CheckResult {
  const lookedAt = 'the running instance';
  const remedy = 'Look at `holdfast cluster status`.';
  if (!running) return { lookedAt, ...unheard(dataDir) };
  const fact = running.facts.cluster as { ok?: boolean; text?: string; reason?: string } | undefined;
  if (!fact) return { state: 'unknown', lookedAt, found: 'it does not report of a cluster', remedy };
  if (fact.ok === false)
    return { state: 'fail', lookedAt, found: fact.reason ?? 'something is wrong', remedy };
  return { state: 'ok', lookedAt, found: fact.text ?? 'it is a host of the cluster' };
}

/** Nobody answered for the folder: the lock says whether a process runs there all the same. */
function unheard(dataDir: string): Omit<CheckResult, 'lookedAt'> {
  const pid = lockedBy(dataDir);
  if (pid === undefined)
    return { state: 'unknown', found: 'none runs on this data folder', remedy: 'Start it.' };
  if (readRuntimeFile(dataDir)?.surfaces.console === undefined) {
    const found = `process ${pid} runs, and has no health page: it starts or stops, or runs no console plugin`;
    return { state: 'unknown', found, remedy: 'Look at `holdfast cluster status`.' };
  }
  const remedy = `Look at the process: \`ps -o stat= -p ${pid}\` gives T where somebody stopped it, \`kill -CONT ${pid}\` lets it go on.`;
  return { state: 'fail', found: `process ${pid} runs, and its health page does not answer`, remedy };
}

function openLink(options: ClusterOptions): Promise<NatsLink> {
  return NatsLink.open(
    { ...options, host: `${options.host}-doctor` },
    { ...dependencies, key: ClusterKey.open(options.keyFile) },
  );
}

async function withLink(
  options: ClusterOptions,
  name: string,
  look: (link: NatsLink) => ReturnType<Look>,
): Promise<CheckResult> {
  const link = await openLink(options);
  const lookedAt = link.shown;
  try {
    if (await link.ready(CONNECT_MS)) return { lookedAt, ...(await look(link)) };
    const found = `there is no connection: ${link.problem}`;
    return { state: 'unknown', lookedAt, found, remedy: 'See the check cluster.reachable.' };
  } catch (error) {
    const result = untried(error, name);
    if (result) return { lookedAt, ...result };
    if (isCoded(error)) return { state: 'fail', lookedAt, found: error.what, remedy: error.remedy };
    throw error;
  } finally {
    await link.close();
  }
}

/**
 * @param name of the check
 * @returns what is to be said where no quorum answered, which is the finding of other checks; undefined of another error
 */
export function untried(error: unknown, name: string): Omit<CheckResult, 'lookedAt'> | undefined {
  if (!(error instanceof StreamUnavailable || error instanceof StreamUnknown)) return undefined;
  const others =
    name === 'replicas' ? '`cluster.reachable` is' : '`cluster.reachable` and `cluster.replicas` are';
  const remedy = `The servers are that way for some seconds after one of them was lost. If it stays so, try again when ${others} ok.`;
  return { state: 'unknown', found: error.what, remedy };
}

const checkStreamName = ({ name }: ClusterOptions): string => `HF_${name}_CHECK`;

/** A small stream for checks alone. It stays: hosts may not delete streams. One that was just made has no leader for some seconds. */
async function checkStream(link: NatsLink, options: ClusterOptions): Promise<LinearStream> {
  const stream = await LinearStream.open(
    link,
    {
      name: checkStreamName(options),
      subjects: [`hf.${options.name}.check`],
      maxBytes: 256 * 1024,
      discard: 'old',
      replicas: options.replicas,
    },
    dependencies,
  );
  const giveUpAt = performance.now() + ELECTION_MS;
  for (;;) {
    try {
      await stream.append('a check begins');
      return stream;
    } catch (error) {
      if (!(error instanceof StreamUnavailable) || performance.now() > giveUpAt) throw error;
      await delay(250);
    }
  }
}

interface OwnStreams {
  readonly infos: readonly StreamInfo[];
  /** Names of those that have no leader now. */
  readonly unanswered: readonly string[];
}

/** Those of the hosts, without the one that is for checks alone. */
async function ownStreams(link: NatsLink, options: ClusterOptions): Promise<OwnStreams> {
  const manager = await link.manager();
  const all = await LinearStream.names(link, `hf.${options.name}.>`);
  const names = all.filter((stream) => stream !== checkStreamName(options));
  const infos = await Promise.all(names.map((stream) => manager.streams.info(stream).catch(() => stream)));
  return {
    infos: infos.filter((info) => typeof info !== 'string').filter(({ cluster }) => isLed(cluster)),
    unanswered: infos.flatMap((info) =>
      typeof info === 'string' ? [info] : isLed(info.cluster) ? [] : [info.config.name],
    ),
  };
}
