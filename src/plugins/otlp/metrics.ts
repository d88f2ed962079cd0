import { count, debounceTime, exhaustMap, map, type Observable, startWith, takeUntil } from 'rxjs';
import type { Counter, Metrics } from '../../core/host/metrics/metrics.ts';
import type { Signal } from './decode/decode.ts';
import type { SpoolLoad } from './intake-actor.ts';
import type { Refusal } from './receive/receiver.ts';
import type { Frame } from './spool/protocol.ts';

/** An overload is over when no request was refused for it during this time, ms. */
const CALM_MS = 5_000;

interface Readings {
  readonly spool: () => SpoolLoad;
  /** Bytes of bodies in memory. */
  readonly held: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Numbers since the start. */
export interface IntakeCounts {
  /** Items by signal. */
  readonly taken: ReadonlyMap<string, number>;
  /** Items that were refused of requests that were taken, by signal. */
  readonly refused: ReadonlyMap<string, number>;
  /** Requests of which nothing was taken, by reason. */
  readonly turnedAway: ReadonlyMap<string, number>;
  /** Rows that the database refused for good. */
  readonly lost: number;
}

/** The receiver's numbers on `/metrics`. */
export class IntakeMetrics {
  readonly #items: Counter;
  readonly #requests: Counter;
  readonly #rows: Counter;
  readonly #damaged: Counter;

  constructor(metrics: Metrics, { spool, held, now }: Readings) {
    this.#items = metrics.counter('otlp_items_total', {
      help: 'Spans, data points and log records of requests that were taken.',
      labels: ['signal', 'result'],
    });
    this.#requests = metrics.counter('otlp_turned_away_total', {
      help: 'Requests of which nothing was taken.',
      labels: ['reason'],
    });
    this.#rows = metrics.counter('otlp_rows_total', {
      help: 'Rows that left the spool.',
      labels: ['table', 'result'],
    });
    this.#damaged = metrics.counter('otlp_damaged_frames_total', {
      help: 'Batches on disk that were damaged when the spool was opened.',
    });
    metrics.gauge('otlp_spool_bytes', {
      help: 'Bytes on disk that are not in the database.',
      collect: (gauge) => gauge.set(spool().bytes),
    });
    metrics.gauge('otlp_spool_rows', {
      help: 'Rows that were answered or are about to be, and are not in the database.',
      collect: (gauge) => gauge.set(spool().rows),
    });
    metrics.gauge('otlp_lag_seconds', {
      help: 'Age of the oldest row that is not in the database.',
      collect: (gauge) => gauge.set((now() - (spool().oldest ?? now())) / 1000),
    });
    metrics.gauge('otlp_body_bytes', {
      help: 'Memory of bodies that are being received or wait for their answer.',
      collect: (gauge) => gauge.set(held()),
    });
  }

  taken(signal: Signal, rows: number, refused: number): void {
    this.#items.inc({ signal, result: 'taken' }, rows);
    if (refused > 0) this.#items.inc({ signal, result: 'refused' }, refused);
  }

  refused({ reason }: Refusal): void {
    this.#requests.inc({ reason });
  }

  left({ table, rows }: Frame, result: 'inserted' | 'lost'): void {
    this.#rows.inc({ table, result }, rows);
  }

  /** What was counted since the start, for people. */
  async counted(): Promise<IntakeCounts> {
    const [items, requests, rows] = await Promise.all([
      this.#items.get(),
      this.#requests.get(),
      this.#rows.get(),
    ]);
    const of = (values: typeof items.values, name: string, result: string) =>
      new Map(
        values.flatMap(({ labels, value }) =>
          labels.result === result ? [[String(labels[name]), value] as const] : [],
        ),
      );
    return {
      taken: of(items.values, 'signal', 'taken'),
      refused: of(items.values, 'signal', 'refused'),
      turnedAway: new Map(requests.values.map(({ labels, value }) => [String(labels.reason), value])),
      lost: [...of(rows.values, 'table', 'lost').values()].reduce((sum, value) => sum + value, 0),
    };
  }

  damaged(frames: number): void {
    this.#damaged.inc({}, frames);
  }
}

/** Reduces single refusals to two messages: an overload began; it is over, with the number of refused requests. */
export function overloads(
  refusals: Observable<void>,
): Observable<{ readonly overloaded: boolean; readonly refused: number }> {
  const calm = refusals.pipe(startWith(undefined), debounceTime(CALM_MS));
  return refusals.pipe(
    exhaustMap(() =>
      refusals.pipe(
        takeUntil(calm),
        count(),
        map((others) => ({ overloaded: false, refused: 1 + others })),
        startWith({ overloaded: true, refused: 0 }),
      ),
    ),
  );
}
