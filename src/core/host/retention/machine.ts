import { assign, setup } from 'xstate';

/** Records that were written to an archive, or an archive that was deleted. */
export interface ArchiveStep {
  /** The name of the file, without its folder. */
  readonly file: string;
  /** The first and the last record in it. */
  readonly from: number;
  readonly to: number;
  /** The size of the file. */
  readonly bytes: number;
}

export interface RetentionContext {
  /** The newest archive that was made. */
  readonly archived?: ArchiveStep;
  /** The newest archive that was deleted: older records cannot be read any more. */
  readonly deleted?: ArchiveStep;
}

export type RetentionEvent =
  | ({ readonly type: 'ARCHIVED' } & ArchiveStep)
  | ({ readonly type: 'ARCHIVE_DELETED' } & ArchiveStep);

/** What the runtime archived and deleted of its own log, one record for each step. */
export const retention = setup({
  types: {} as { context: RetentionContext; events: RetentionEvent },
  actions: {
    rememberArchived: assign(({ event: { type: _, ...archived } }) => ({ archived })),
    rememberDeleted: assign(({ event: { type: _, ...deleted } }) => ({ deleted })),
  },
}).createMachine({
  id: 'retention',
  context: {},
  initial: 'active',
  on: {
    ARCHIVED: { actions: 'rememberArchived' },
    ARCHIVE_DELETED: { actions: 'rememberDeleted' },
  },
  states: { active: {} },
});
