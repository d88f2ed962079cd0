import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor, routeOf } from '../../kernel/actors/definition.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { retention } from './machine.ts';
import { describeRetention, RETENTION } from './records.ts';

const { type, key } = parseActorRef(RETENTION);

export const retentionActor = defineActor({
  type,
  machine: retention,
  version: 1,
  describe: describeRetention,
});

const stepSchema = z.object({ file: z.string(), from: z.number(), to: z.number(), bytes: z.number() });

/** Records were archived, and may be deleted from the live log. */
export const recordsArchived = defineTopic(
  'log.archived',
  stepSchema,
  'The oldest records of the live log were written to an archive, which was read back.',
);

/** An archive is about to be deleted. */
export const archiveDeleted = defineTopic(
  'log.archive_deleted',
  stepSchema,
  'The oldest archive is deleted, because the archives hold more than their limit.',
);

export const recordsArchivedRoute = routeOf(recordsArchived, retentionActor, ({ payload }) => [
  { key, event: { type: 'ARCHIVED' as const, ...payload } },
]);

export const archiveDeletedRoute = routeOf(archiveDeleted, retentionActor, ({ payload }) => [
  { key, event: { type: 'ARCHIVE_DELETED' as const, ...payload } },
]);
