import { z } from 'zod';
import { listenOptions } from '../../core/host/http/listen-options.ts';
import { LAST_CALL_MS, type MonitorSettings } from '../../machines/uptime-monitor/diagnosis.ts';

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/, 'it may hold lower case letters, digits and - _ .');
const seconds = (least: number, unless: number) => z.int().min(least).max(31_536_000).default(unless);

const monitor = z.strictObject({
  name,
  /** For people; the name unless set. */
  title: z.string().min(1).max(100).optional(),
  /** The status page on which it stands, `/status/<slug>`; the name unless set. */
  slug: name.optional(),
  /** Seconds within which a beat must follow the one before. */
  interval: seconds(1, 60),
  /** Beats that may be missed beside that, and the seconds given to each; the interval unless set. */
  retries: z.int().min(0).max(100).default(0),
  retryInterval: z.int().min(1).max(31_536_000).optional(),
  /** Seconds between two reminders while it is DOWN and nobody has acknowledged it. */
  remindEvery: seconds(60, 3_600),
});

/**
 * Two of ours: the watchdog's is DOWN 600 s after its last beat, the reconciler's after 300 s. The watchdog beats every 300 s, some
 * milliseconds sooner or later: an interval of as much would call every other beat late.
 */
const ownMonitors = [
  {
    name: 'clickstack-watchdog',
    title: 'Observability watchdog',
    interval: 330,
    retries: 1,
    retryInterval: 270,
    remindEvery: 3_600,
  },
  { name: 'router-ula', title: 'ULA reconciler', interval: 300, retries: 0, remindEvery: 3_600 },
];

export const uptimeMonitorOptions = z.strictObject({
  ...listenOptions(3001),
  /** Whether pages say why; only where no other machine can read them unless set. */
  details: z.boolean().optional(),
  monitors: z
    .array(monitor)
    .max(20_000)
    .default(ownMonitors)
    .superRefine((monitors, context) => {
      const seen = new Set<string>();
      for (const [index, { name }] of monitors.entries()) {
        if (seen.has(name)) {
          context.addIssue({ code: 'custom', path: [index, 'name'], message: `${name} is listed twice` });
        }
        seen.add(name);
      }
    }),
});

/** What each listed monitor's machine is given. */
export function monitorSettings({ monitors }: z.output<typeof uptimeMonitorOptions>): MonitorSettings[] {
  return monitors.map((monitor) => {
    const { name, title = name, slug = name, interval, retries, retryInterval = interval } = monitor;
    return {
      name,
      title,
      slug,
      intervalMs: interval * 1_000,
      graceMs: Math.max(LAST_CALL_MS, retries * retryInterval * 1_000),
      remindMs: monitor.remindEvery * 1_000,
    };
  });
}
