import type { Counter, Metrics } from '../../core/host/metrics/metrics.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Signal } from './decode/decode.ts';
import type { Refusal } from './receive/receiver.ts';
import type { Frame } from './spool/protocol.ts';

interface Readings {
  readonly spool: () => {
    readonly bytes: number;
    readonly rows: number;
    readonly oldest: number | undefined;
  };
  /** Bytes of bodies in memory. */
  readonly held: () => number;
  /** ms since the epoch */
  readonly now: () => number;
}

/** The numbers of the receiver on `/metrics`. */
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
      help: 'Batches on disk that could not be read any more when the spool was opened.',
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

  turnedAway({ reason }: Refusal): void {
    this.#requests.inc({ reason });
  }

  inserted({ table, rows }: Frame): void {
    this.#rows.inc({ table, result: 'inserted' }, rows);
  }

  damaged(frames: number): void {
    this.#damaged.inc({}, frames);
  }

  lost({ table, rows }: Frame): void {
    this.#rows.inc({ table, result: 'lost' }, rows);
  }
}

/** So long without a refusal ends a press, ms. */
const CALM_MS = 5_000;

/** Turns single refusals into two facts: when they began, and when there were none for a while. */
export class Pressure {
  readonly #clock: Clock;
  readonly #changed: (pressed: boolean, refused: number) => void;
  #refused = 0;
  #since = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, changed: (pressed: boolean, refused: number) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  refused(): void {
    this.#refused += 1;
    this.#since += 1;
    if (this.#cancel) return;
    this.#changed(true, 0);
    this.#watch();
  }

  stop(): void {
    this.#cancel?.();
  }

  #watch(): void {
    this.#since = 0;
    this.#cancel = this.#clock.after(CALM_MS, () => {
      if (this.#since > 0) return this.#watch();
      this.#cancel = undefined;
      this.#changed(false, this.#refused);
      this.#refused = 0;
    });
  }
}
