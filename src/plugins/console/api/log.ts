import { z } from 'zod';
import { version } from '../../../core/kernel/version.ts';
import { get, time } from './endpoint.ts';

export const session = get({
  path: '/api/session',
  summary: 'Who is logged in, and until when',
  answer: z.object({ by: z.string(), expiresAt: time.optional(), instance: z.string() }),
  run: async (_input, { caller, source }) => ({
    by: caller.by,
    ...(caller.session && { expiresAt: caller.session.expiresAt }),
    instance: source.place,
  }),
});

export const logFacts = get({
  path: '/api/log',
  summary: 'Which log this is, and what it holds',
  answer: z.object({
    mode: z.enum(['live', 'folder', 'file']),
    instance: z.string().meta({ description: 'the data folder, or the file' }),
    version: z.string(),
    first: z.int().meta({ description: '0 of an empty log' }),
    last: z.int().meta({ description: 'the newest durable record' }),
    firstTime: time.optional(),
    lastTime: time.optional(),
    now: time
      .optional()
      .meta({ description: 'the time of the instance; absent of a log that nothing writes' }),
    state: z.enum(['open', 'frozen', 'closed', 'stopped']),
    reason: z.string().optional(),
    waiting: z.int().optional().meta({ description: 'records that are not durable yet' }),
    bytes: z.int(),
  }),
  run: (_input, { ask, source, services }) =>
    ask(async ({ log }) => {
      const [first, last] = [log.firstSeq(), log.lastSeq()];
      const { state, reason, seq, durableSeq } = services?.log.status() ?? { state: 'stopped' as const };
      return {
        mode: source.mode,
        instance: source.place,
        version,
        ...{ first, last },
        ...(first > 0 && { firstTime: log.record(first).at, lastTime: log.record(last).at }),
        ...(services && { now: services.clock.now() }),
        state,
        ...(reason !== undefined && { reason }),
        ...(seq !== undefined && durableSeq !== undefined && { waiting: seq - durableSeq }),
        bytes: log.usedBytes(),
      };
    }),
});
