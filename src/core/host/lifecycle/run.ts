import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import { version } from '../../kernel/version.ts';
import type { Logger } from '../logging/logger.ts';
import { HOST, runsOf } from './actor.ts';

/**
 * Records that this process runs on the data folder, and logs how the run before it ended.
 *
 * @returns records that it stops; `reason` is e.g. the name of a signal
 */
export function beginRun(actors: ActorSystem, clock: Clock, logger: Logger): (reason: string) => void {
  const startedAt = clock.now();
  actors.send(HOST, { type: 'BOOTED', pid: process.pid, startedAt, version });
  const { last } = runsOf(actors.snapshot(HOST));
  logger.info({ startedAt, version, lastStop: last }, 'runtime.booted'); // every line bears the pid
  return (reason) => {
    actors.send(HOST, { type: 'STOPPING', reason, stoppedAt: clock.now() });
    logger.info({ reason }, 'runtime.stopping');
  };
}
