import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Place, placeOf, seqAt } from '../../core/host/history/place.ts';
import { cut, plainText } from '../../core/host/terminal.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { HistoryReader } from '../../core/kernel/log/event-log.ts';
import { IncidentsError } from './errors.ts';

const UNITS: Readonly<Record<string, string>> = {
  second: 's',
  sec: 's',
  minute: 'm',
  min: 'm',
  hour: 'h',
  hr: 'h',
  day: 'd',
};

/**
 * Reads a place as an agent writes it: ISO 8601 in UTC unless it says otherwise, `2h ago`, `15 minutes ago`, `now`, or the
 * number of a record.
 *
 * @param now epoch milliseconds
 * @throws HF_INCIDENTS_PLACE
 */
export function parsePlace(text: string, now: number): Place {
  const plain = text.trim();
  if (/^now$/i.test(plain)) return { at: now };
  const [, count, unit = ''] = /^(\d{1,6}) ?([a-z]+)(?: ago)?$/i.exec(plain) ?? [];
  const name = unit.toLowerCase();
  const short = UNITS[name.replace(/s$/, '')] ?? name;
  const place = placeOf(count === undefined ? plain : `${count}${short}`, now);
  if (place) return place;
  throw new IncidentsError('HF_INCIDENTS_PLACE', { text: JSON.stringify(cut(plainText(plain), 60)) });
}

/**
 * The number of the newest record that is not after a place; of a place after the end, the last one.
 *
 * @throws HF_INCIDENTS_PLACE; HF_LOG_RANGE the log has no record so old
 */
export async function seqOf(log: HistoryReader, text: string, now: number): Promise<number> {
  const place = parsePlace(text, now);
  const seq = await seqAt(log, place);
  const [first, last] = [log.firstSeq(), log.lastSeq()];
  if (seq >= first && seq <= last) return seq;
  throw new KernelError('HF_LOG_RANGE', {
    seq: 'at' in place ? `as old as ${isoOf(place.at)}` : seq,
    first,
    last,
  });
}

/** Epoch milliseconds in ISO 8601, UTC. */
export const isoOf = (at: number): string => new Date(at).toISOString();

const cursorSchema = z.tuple([z.string(), z.int().nonnegative()]);

/** The place from which the next page goes on. It is bound to the question, so that it does not answer another one. */
export function cursorOf(question: object, position: number): string {
  return Buffer.from(JSON.stringify([digestOf(question), position])).toString('base64url');
}

/** @throws HF_INCIDENTS_CURSOR */
export function positionOf(cursor: string | undefined, question: object): number | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [digest, position] = cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    if (digest === digestOf(question)) return position;
  } catch {
    // What is no cursor is refused like one of another question.
  }
  throw new IncidentsError('HF_INCIDENTS_CURSOR');
}

function digestOf(question: object): string {
  return createHash('sha256').update(JSON.stringify(question)).digest('base64url').slice(0, 12);
}
