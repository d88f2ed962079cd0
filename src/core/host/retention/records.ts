/** What the retention of a log leaves in it: enough to read it without the machine. */

import { HIDDEN } from '../../kernel/actors/definition.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { ActorRef } from '../../kernel/ids.ts';
import { ARCHIVE_DELETED, type LogRecord } from '../../kernel/log/record.ts';
import { sizeText } from '../size.ts';
import type { RetentionContext } from './machine.ts';

/** The one actor that remembers what was archived and deleted of a log. */
export const RETENTION = ARCHIVE_DELETED.actor as ActorRef;

export function retentionOf(state: Readonly<ActorState> | undefined): RetentionContext {
  return (state?.context ?? {}) as RetentionContext;
}

/** A record of it in few words. */
export function describeRetention({ event }: LogRecord): string {
  const { from, to, file, bytes } = event as Readonly<Record<string, unknown>>;
  const size = sizeText(Number(bytes));
  switch (event.type) {
    case 'ARCHIVED':
      return `records ${from} to ${to} were archived in ${file} (${size})`;
    case ARCHIVE_DELETED.event:
      return `archive ${file} with records ${from} to ${to} is deleted (${size}): the archives hold more than their limit`;
    default:
      return HIDDEN;
  }
}
