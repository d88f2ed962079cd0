import { z } from 'zod';

/** Times are milliseconds, sizes bytes. */
export const clusterOptions = z.strictObject({
  /** Path of a kubeconfig; without it, the account that a pod is given. */
  kubeconfig: z.string().min(1).optional(),
  /** The context to use of it, in the place of its current one. */
  context: z.string().min(1).optional(),
  /** Until a call is given up. */
  timeoutMs: z.int().min(100).max(120_000).default(15_000),
  /** Largest answer that is read. */
  answerLimit: z
    .int()
    .min(1_024)
    .default(16 * 1024 * 1024),
});

export type ClusterOptions = z.output<typeof clusterOptions>;
