/** The answers of the API, for the pages: types alone. They are those of the schemas. */
import type { z } from 'zod';
import type { Endpoint } from './endpoint.ts';
import type { logFacts, session } from './log.ts';
import type { showMachine } from './machines.ts';
import type { listRecords, recordAtTime, recordRow, showRecord } from './records.ts';

type AnswerOf<E extends Endpoint> = z.output<E['answer']>;

export type RecordRow = z.output<typeof recordRow>;
export type SessionAnswer = AnswerOf<typeof session>;
export type LogAnswer = AnswerOf<typeof logFacts>;
export type RecordsAnswer = AnswerOf<typeof listRecords>;
export type RecordAtTimeAnswer = AnswerOf<typeof recordAtTime>;
export type RecordAnswer = AnswerOf<typeof showRecord>;
export type MachineAnswer = AnswerOf<typeof showMachine>;
