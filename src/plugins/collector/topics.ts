import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/index.ts';

/** The collector's config names another ingest key than before. */
export const configRead: Topic<{ at: number; fingerprint?: string | undefined }> = defineTopic(
  'collector.config_read',
  z.object({ at: z.number(), fingerprint: z.string().optional() }),
  "The collector's effective config was read and names another ingest key, by its fingerprint.",
);
