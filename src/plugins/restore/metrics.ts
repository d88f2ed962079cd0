import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { RestoreContext } from '../../machines/restore/drill-shapes.ts';

/** How the newest drill of each path went, as gauges that an alert can be made of anywhere. */
export function registerMetrics(context: PluginContext, drills: () => RestoreContext | undefined): void {
  context.onStart(() => {
    const { metrics } = context.services;
    const newest = (path: string) => drills()?.results.findLast((result) => result.path === path);
    const gauge = (name: string, help: string, value: (path: string) => number | undefined) =>
      metrics.gauge(name, {
        help,
        labels: ['path'],
        collect: (own) => {
          for (const path of ['a', 'b']) {
            const found = value(path);
            if (found !== undefined) own.set({ path }, found);
          }
        },
      });
    gauge('restore_drill_ok', 'Whether the newest restore drill was proven: 1, or 0.', (path) => {
      const result = newest(path);
      return result && Number(result.outcome === 'completed');
    });
    gauge(
      'restore_drill_end_seconds',
      'When the newest restore drill ended, in seconds since 1970.',
      (path) => {
        const result = newest(path);
        return result && result.endedAt / 1_000;
      },
    );
    gauge('restore_drill_duration_seconds', 'How long the newest restore drill took.', (path) => {
      const result = newest(path);
      return result && (result.endedAt - result.at) / 1_000;
    });
    metrics.gauge('restore_scratch_left', {
      help: 'Clean-ups after restore drills that failed so far and are tried again.',
      collect: (own) => own.set(drills()?.cleanFailures ?? 0),
    });
  });
}
