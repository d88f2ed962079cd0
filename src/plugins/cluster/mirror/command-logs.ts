import { z } from 'zod';
import { overrideFromEnvironment } from '../../../core/host/config/environment.ts';
import { createLogger } from '../../../core/host/logging/logger.ts';
import type { HostLogs, OrphanedRecords } from '../../../core/host/plugin/command.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { cluster } from '../index.ts';
import { ClusterKey } from '../keys.ts';
import { NatsLink } from '../nats/link.ts';
import { type ClusterOptions, clusterOptions } from '../options.ts';
import { hostRuns } from '../presence/name-claim.ts';
import { hostsOf, openHostLog } from './host-log.ts';
import type { LogStreams } from './incarnations.ts';

/** Until a command gives up on servers that do not answer. */
const PATIENCE_MS = 10_000;

/**
 * The settings by which a command reads the streams: those of the plugin, where it is configured, else those that the plugin's variables
 * say.
 *
 * @param options of the plugin, checked
 * @throws HF_CLUSTER_UNSET neither names servers and the key; HF_CONFIG_ENV a variable cannot be used
 */
export function settingsOf(
  options: Readonly<Record<string, unknown>> | undefined,
  env: Readonly<Record<string, string | undefined>>,
): ClusterOptions {
  if (!options && !env.HOLDFAST_NATS_URL)
    throw new ClusterError('HF_CLUSTER_UNSET', { reason: 'HOLDFAST_NATS_URL is empty' });
  const { options: named, problems } = overrideFromEnvironment(
    cluster.definition,
    {},
    env,
    'the environment',
  );
  for (const problem of problems) throw problem;
  const { data, error } = clusterOptions.safeParse(options ?? named);
  if (data) return data;
  const issue = error.issues[0];
  throw new ClusterError('HF_CLUSTER_UNSET', { reason: `${issue?.path.join('.')}: ${issue?.message}` });
}

/** Connects to NATS for one command. @throws HF_CLUSTER_UNREACHABLE; HF_CLUSTER_KEY, HF_CONFIG_SECRET_* the key cannot be read */
export async function connectLogs(options: ClusterOptions): Promise<HostLogs> {
  const logger = createLogger({ level: 'silent' });
  const key = ClusterKey.open(options.keyFile);
  const link = await NatsLink.open(options, { clock: systemClock, logger, key });
  // Neither the timers of the clock nor a connection that is lost keep the process.
  const alive = setInterval(() => {}, PATIENCE_MS);
  const close = () => {
    clearInterval(alive);
    return link.close();
  };
  if (!(await link.ready(PATIENCE_MS))) {
    const reason = link.problem ?? 'no server answered';
    await close();
    throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason });
  }
  const streams: LogStreams = { link, cluster: options.name, clock: systemClock, logger };
  return {
    own: options.host,
    hosts: () => hostsOf(streams),
    async open(host, signal) {
      const { reader, header, clockBehindMs, isFilled, end, fences } = await openHostLog(
        streams,
        host,
        undefined,
        signal,
      );
      const lacking = [
        ...(header.range.from > 1
          ? [
              `its stream begins with record ${header.range.from}: those before are on that host, unless they were pruned`,
            ]
          : []),
        ...(isFilled
          ? []
          : [
              `its stream is being filled again, and ends with record ${end.seq} of ${header.range.to} so far`,
            ]),
      ];
      const lacks = lacking.length > 0 ? lacking.join('; ') : undefined;
      const fenced = fences.map(({ singleton }) => singleton);
      const orphaned = await orphanedIn(reader, fenced).catch((error: unknown) => {
        reader.close();
        throw error;
      });
      return { host, reader, key: header.key, clockBehindMs, lacks, orphaned };
    },
    isRunning: (host) => hostRuns({ link, clock: systemClock, name: options.name, host }),
    close,
  };
}

/** What a host has told of its orphaned branches. @param singletons that others took over from it */
async function orphanedIn(
  reader: SqliteReader,
  singletons: readonly string[],
): Promise<readonly OrphanedRecords[]> {
  const found: OrphanedRecords[] = [];
  for (const singleton of new Set(singletons)) {
    for await (const { event } of reader.read({ actor: `${singletonActor.type}/${singleton}` })) {
      const { data } = orphanedEvent.safeParse(event);
      if (data) found.push({ ...data, singleton });
    }
  }
  return found.sort((one, other) => one.from - other.from);
}

const orphanedEvent = z.object({
  type: z.literal('ORPHANED'),
  from: z.int(),
  to: z.int(),
  by: z.string(),
  types: z.array(z.string()),
});
