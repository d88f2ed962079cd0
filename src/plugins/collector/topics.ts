import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';

/** The collector's config names another ingest key than before. */
export const configRead: Topic<{ at: number; fingerprint?: string | undefined }> = defineTopic(
  'collector.config_read',
  z.object({ at: z.number(), fingerprint: z.string().optional() }),
  "The collector's effective config was read and names another ingest key, by its fingerprint.",
);

/** While a rotation waits for producers: one is seen with the new key for the first time. */
export const producerMoved: Topic<{ at: number; producer: string }> = defineTopic(
  'collector.producer_moved',
  z.object({ at: z.number(), producer: z.string() }),
  'A producer is seen with the new ingest key for the first time, while a rotation waits for that.',
);

const finding = z.object({
  code: z.string(),
  severity: z.enum(['warning', 'critical']),
  place: z.string(),
  text: z.string(),
  remedy: z.string(),
});

/** All that is wrong with the collector's config, at each start and when that changes. */
export const findingsRead: Topic<{ findings: readonly z.infer<typeof finding>[] }> = defineTopic(
  'collector.findings_read',
  z.object({ findings: z.array(finding).readonly() }),
  "What is wrong with the collector's effective config; none of it when the list is empty.",
);
