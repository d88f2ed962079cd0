import { z } from 'zod';

/** See `Takeover` of the machine of singletons. */
export const takeoverSchema = z.object({
  host: z.string(),
  seq: z.int().min(0),
  hash: z.string(),
  by: z.string(),
  token: z.string(),
});

/** What a host records of its takeovers. */
export const takeoverEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('TOOK_OVER'),
    at: z.number(),
    by: z.int(),
    takeovers: z.array(takeoverSchema),
  }),
  z.object({ type: z.literal('TAKEOVER_NOTED'), at: z.number(), host: z.string(), token: z.string() }),
]);
