import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { type ActorDefinition, defineActor } from '../../kernel/actors/definition.ts';
import { defineRoute } from '../../kernel/actors/route.ts';
import type { ActorState } from '../../kernel/actors/state.ts';
import { type ActorRef, parseActorRef } from '../../kernel/ids.ts';
import type { SnapshotsSaved } from '../../kernel/log/event-log.ts';
import { CHECKPOINT } from '../../kernel/log/record.ts';
import { describeLifecycle } from './describe.ts';
import { type LifecycleContext, lifecycle } from './machine.ts';

/** The one actor that remembers the runs of a data folder. */
export const HOST = CHECKPOINT.actor as ActorRef;

const { type, key } = parseActorRef(HOST);

/** Its version stays 1: logs since the first release hold it. */
export const lifecycleActor: ActorDefinition = defineActor({
  type,
  machine: lifecycle,
  version: 1,
  describe: describeLifecycle,
});

/** Snapshots of actors were saved; the digest becomes a record, so that the chain covers them too. */
export const checkpointSaved: Topic<SnapshotsSaved> = defineTopic(
  'log.checkpoint_saved',
  z.object({ seq: z.number(), count: z.number(), digest: z.string() }),
  'The states of the actors that changed were saved, so that a start need not read older records.',
);

export const checkpointRoute = defineRoute(checkpointSaved, type, ({ payload }) => [
  { key, event: { type: CHECKPOINT.event, ...payload } },
]);

/** What the actor of a data folder remembers; nothing before its first run. */
export function runsOf(state: Readonly<ActorState> | undefined): Partial<LifecycleContext> {
  return (state?.context ?? {}) as Partial<LifecycleContext>;
}
