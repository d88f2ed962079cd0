import type { Metrics } from '../../core/host/metrics/metrics.ts';
import type { Observed } from './database.ts';

const BUCKETS = [0.005, 0.02, 0.1, 0.5, 2, 10];

/** @returns what the database tells of each piece of work */
export function measure(metrics: Metrics, isThere: () => boolean): (observed: Observed) => void {
  const works = metrics.counter('columnar_works_total', {
    help: 'Queries and inserts of the columnar database, by how they ended.',
    labels: ['work', 'outcome'],
  });
  const seconds = metrics.histogram('columnar_work_seconds', {
    help: 'How long they took, the wait for a connection included.',
    labels: ['work'],
    buckets: BUCKETS,
  });
  const rows = metrics.counter('columnar_rows_inserted_total', { help: 'Rows that are in its tables.' });
  metrics.gauge('columnar_reachable', {
    help: '1 while the columnar database answers.',
    collect: (gauge) => gauge.set(isThere() ? 1 : 0),
  });
  return ({ work, fault, ...observed }) => {
    works.inc({ work, outcome: fault?.code ?? 'done' });
    seconds.observe({ work }, observed.seconds);
    if (work === 'insert' && !fault) rows.inc(observed.rows);
  };
}
