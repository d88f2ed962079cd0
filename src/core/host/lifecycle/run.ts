import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor, HIDDEN, routeOf } from '../../kernel/actors/definition.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type ActorRef, parseActorRef } from '../../kernel/ids.ts';
import { CHECKPOINT, type LogRecord } from '../../kernel/log/record.ts';
import { version } from '../../kernel/version.ts';
import type { Logger } from '../logging/logger.ts';
import { type LifecycleContext, lifecycle } from './machine.ts';

/**
 * Records that this process runs on the data folder, and logs how the run before it ended.
 *
 * @returns records that it stops; `reason` is e.g. the name of a signal
 */
export function beginRun(actors: ActorSystem, clock: Clock, logger: Logger): (reason: string) => void {
  const startedAt = clock.now();
  actors.send(lifecycleActor, key, { type: 'BOOTED', pid: process.pid, startedAt, version });
  const last = actors.get(lifecycleActor, key)?.context.last;
  logger.info({ startedAt, version, lastStop: last }, 'runtime.booted'); // every line bears the pid
  return (reason) => {
    actors.send(lifecycleActor, key, { type: 'STOPPING', reason, stoppedAt: clock.now() });
    logger.info({ reason }, 'runtime.stopping');
  };
}

/** The one actor that remembers the runs of a data folder. */
export const HOST = CHECKPOINT.actor as ActorRef;

const { type, key } = parseActorRef(HOST);

/** Its version stays 1: logs since the first release hold it. */
export const lifecycleActor = defineActor({
  type,
  machine: lifecycle,
  version: 1,
  describe: describeLifecycle,
});

/** Snapshots of actors were saved; the digest becomes a record, so that the chain covers them too. */
export const checkpointSaved = defineTopic(
  'log.checkpoint_saved',
  z.object({ seq: z.number(), count: z.number(), digest: z.string() }),
  'The states of the actors that changed were saved, so that a start need not read older records.',
);

export const checkpointRoute = routeOf(checkpointSaved, lifecycleActor, ({ payload }) => [
  { key, event: { type: CHECKPOINT.event, ...payload } },
]);

/** What the actor of a data folder remembers; nothing before its first run. */
export function runsOf(state: Readonly<ActorState> | undefined): Partial<LifecycleContext> {
  return (state?.context ?? {}) as Partial<LifecycleContext>;
}

/** A record of the runtime's own life in few words; an empty text is routine. */
function describeLifecycle({ event, to }: LogRecord): string {
  const { pid, reason, version } = event as Readonly<Record<string, unknown>>;
  switch (event.type) {
    case 'BOOTED':
      return `runtime ${version} starts as process ${pid}${ended(to.context?.last)}`;
    case 'STOPPING':
      return `stops: ${reason}`;
    default:
      return HIDDEN; // init, and checkpoints
  }
}

function ended(last: unknown): string {
  const { pid, reason } = (last ?? {}) as Partial<NonNullable<LifecycleContext['last']>>;
  if (pid === undefined) return '';
  return reason === 'killed'
    ? `; the run before it (process ${pid}) was killed`
    : `; the run before it stopped: ${reason}`;
}
