/**
 * The life of the runtime itself, as an actor: when each process on a data folder began, how it ended, and which
 * saved states its log vouches for. Core declares it, so every instance remembers, whatever plugins it has. The
 * machine is as pure as those of `src/machines`, which core does not import.
 */
export { checkpointRoute, checkpointSaved, HOST, lifecycleActor, runsOf } from './actor.ts';
export { type EndedRun, type LifecycleContext, type LifecycleEvent, lifecycle, type Run } from './machine.ts';
export { beginRun } from './run.ts';
