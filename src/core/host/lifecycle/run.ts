import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor, routeOf } from '../../kernel/actors/definition.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { CHECKPOINT, CLOCK } from '../../kernel/log/record.ts';
import { version } from '../../kernel/version.ts';
import { startOfMachine } from '../clock/before-start.ts';
import type { Logger } from '../logging/logger.ts';
import { lifecycle } from './machine.ts';
import { describeLifecycle, HOST } from './records.ts';

/**
 * Records that this process runs on the data folder, and logs how the run before it ended.
 *
 * @returns records that it stops; `reason` is e.g. the name of a signal
 */
export function beginRun(actors: ActorSystem, clock: Clock, logger: Logger): (reason: string) => void {
  const startedAt = clock.now();
  const machineStart = startOfMachine(clock, actors.snapshot(CLOCK.actor));
  actors.send(lifecycleActor, key, { type: 'BOOTED', pid: process.pid, startedAt, version, ...machineStart });
  const last = actors.get(lifecycleActor, key)?.context.last;
  logger.info({ startedAt, version, lastStop: last }, 'runtime.booted'); // every line bears the pid
  return (reason) => {
    actors.send(lifecycleActor, key, { type: 'STOPPING', reason, stoppedAt: clock.now() });
    logger.info({ reason }, 'runtime.stopping');
  };
}

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
