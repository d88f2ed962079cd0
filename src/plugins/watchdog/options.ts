import { z } from 'zod';
import { SIGNAL_TABLES } from '../../core/contracts/columnar-database.ts';

const signal = z.enum(SIGNAL_TABLES);

export const watchdogOptions = z.strictObject({
  /** The push monitor that the heartbeats go to. */
  monitor: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/)
    .default('clickstack-watchdog'),
  /** When it runs, as a cron pattern in UTC. */
  cron: z.string().default('*/5 * * * *'),
  /** Seconds after which the newest row of a watched signal is too old. */
  staleAfter: z.int().min(1).max(86_400).default(300),
  /** The tables that must keep getting rows, once they have any. */
  signals: z.array(signal).min(1).default(['otel_logs', 'otel_metrics_gauge']),
  /** Of these a producer exists: no rows at all is a fault, and not a fresh installation. */
  producers: z.array(signal).default([]),
});

export type WatchdogOptions = z.output<typeof watchdogOptions>;
