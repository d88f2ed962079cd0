import { z } from 'zod';

/** What of the store's answers is used. Unknown fields are left alone: stores gain some with every release. */
const id = z.union([z.int(), z.string()]);
const point = z.object({
  id,
  vector: z.unknown().optional(),
  payload: z.record(z.string(), z.unknown()).nullish(),
});
const snapshot = z.object({
  name: z.string().min(1).max(500),
  creation_time: z.string().nullish(),
  size: z.number().min(0),
  checksum: z.string().nullish(),
});

export const answers = {
  about: z.object({ title: z.string(), version: z.string(), instance: z.string().optional() }),
  collection: z.object({
    status: z.string(),
    points_count: z.number().nullish(),
    config: z.object({ params: z.object({ vectors: z.unknown().optional() }) }),
  }),
  count: z.object({ count: z.int().min(0) }),
  points: z.array(point),
  scroll: z.object({ points: z.array(point), next_page_offset: id.nullish() }),
  snapshot,
  snapshots: z.array(snapshot),
  updated: z.object({ status: z.enum(['completed', 'acknowledged']) }),
  done: z.literal(true),
} as const;

export type SnapshotAnswer = z.output<typeof snapshot>;
export type PointAnswer = z.output<typeof point>;
