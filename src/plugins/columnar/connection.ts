import { defer, merge, Observable, repeat, Subject, type Subscription } from 'rxjs';
import { z } from 'zod';
import type { Bus } from '../../bus/bus.ts';
import { defineTopic } from '../../bus/topic.ts';
import { SIGNAL_TABLES } from '../../core/contracts/columnar-tables.ts';
import type { Logger } from '../../core/host/logging/logger.ts';
import type { Metrics } from '../../core/host/metrics/metrics.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { timestamp } from '../../core/host/terminal.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { EpochMs } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { type ConnectionEvent, connection } from '../../machines/connection.ts';
import type { Database, Observed } from './database.ts';
import { describeConnectionRecord } from './words.ts';

/** A database that does not answer so simple a query in this time counts as lost. */
const CHECK_SECONDS = 5;

/** Shows in the log when the database was lost, why, and when it was back. */
const connectionActor = defineActor({
  type: 'columnar.connection',
  machine: connection,
  version: 1,
  input: () => ({
    alert: {
      name: 'columnar.unreachable',
      text: 'The columnar database cannot be reached: signals are neither stored nor found.',
    },
  }),
  describe: describeConnectionRecord,
});

/** Published at the start, and whenever the database is lost or back. */
const connectionChanged = defineTopic(
  'columnar.connection',
  z.object({ place: z.string(), reason: z.string().optional() }),
  'The columnar database answers, or is lost for a reason.',
);

export function registerConnection<S>(context: PluginContext<S>): void {
  const toDatabase = (event: ConnectionEvent) => [{ key: 'database', event }];
  context.actor(connectionActor);
  context.route(connectionChanged, connectionActor, ({ payload: { place: store, reason } }) =>
    toDatabase(reason === undefined ? { type: 'CONNECTED', store } : { type: 'LOST', store, reason }),
  );
}

export interface ConnectionDependencies {
  readonly database: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Between two checks. */
  readonly checkMs: number;
  /** The next call makes a new connection. */
  readonly reconnect: () => void;
}

/** Checks from time to time whether the database answers, and at once when a query or insert found that it does not. */
export class ConnectionWatch {
  readonly #dependencies: ConnectionDependencies;
  readonly #demands = new Subject<void>();
  #state: 'unknown' | 'connected' | 'lost' = 'unknown';
  #since: EpochMs;
  #reason: string | undefined;
  /** What is wrong with the tables, while the database itself answers. */
  #schemaFault: string | undefined;
  #checking: Promise<void> = Promise.resolve();
  #checks: Subscription | undefined;
  readonly #stopped = new AbortController();

  constructor(dependencies: ConnectionDependencies) {
    this.#dependencies = dependencies;
    this.#since = dependencies.clock.now();
  }

  /** The start does not wait for the first check, so that a server that does not answer does not delay it. */
  start(): void {
    const { clock, checkMs } = this.#dependencies;
    const due = new Observable<void>((next) => clock.after(checkMs, () => next.next()));
    this.#checks = defer(() => {
      this.#checking = this.#check();
      return this.#checking;
    })
      .pipe(repeat({ delay: () => merge(due, this.#demands) }))
      .subscribe();
  }

  /** Ends a check that is under way: a database that does not answer must not hold up a stop. */
  async stop(): Promise<void> {
    this.#checks?.unsubscribe();
    this.#stopped.abort();
    await this.#checking;
  }

  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  /** A query or insert found that the database does not answer. */
  checkNow(): void {
    if (this.isConnected) this.#demands.next();
  }

  /** For the health page. */
  health(): JsonObject {
    const { kind, place } = this.#dependencies.database;
    const reason = this.#reason ?? this.#schemaFault;
    const found = reason ?? (this.#state === 'connected' ? 'answers' : 'has not answered yet');
    return {
      text: `${kind === 'embedded' ? 'embedded, ' : ''}${place}: ${found}, since ${timestamp(this.#since)}`,
      // Until the first answer there is no known fault.
      ok: this.#state !== 'lost' && this.#schemaFault === undefined,
      state: this.#state,
      kind,
      place,
      since: new Date(this.#since).toISOString(),
      ...(reason !== undefined && { reason }),
    };
  }

  get #isStopped(): boolean {
    return this.#checks?.closed === true;
  }

  async #check(): Promise<void> {
    const { database, reconnect, logger } = this.#dependencies;
    try {
      await database.query('SELECT 1', {}, { maxSeconds: CHECK_SECONDS, signal: this.#stopped.signal });
    } catch (error) {
      if (this.#isStopped) return;
      reconnect(); // credentials and authorities may have been renewed
      const reason = reasonOf(error);
      if (this.#state === 'lost') this.#reason = reason;
      else {
        this.#change('lost', reason);
        logger.warn({ place: database.place, reason }, 'columnar.lost');
      }
      return;
    }
    if (this.#isStopped) return;
    if (!this.isConnected) database.forgetSchema();
    await this.#checkSchema();
    if (this.#isStopped || this.isConnected) return;
    this.#change('connected', undefined);
    logger.info({ place: database.place }, 'columnar.connected');
  }

  async #checkSchema(): Promise<void> {
    const { database, logger } = this.#dependencies;
    try {
      for (const table of SIGNAL_TABLES) await database.schema(table);
      if (!this.isConnected)
        for (const { what } of database.notes) logger.warn({ reason: what }, 'columnar.schema_not_renewed');
      this.#schemaFault = undefined;
    } catch (error) {
      const fault = reasonOf(error);
      if (fault !== this.#schemaFault && !this.#isStopped) logger.warn({ reason: fault }, 'columnar.schema');
      this.#schemaFault = fault;
    }
  }

  #change(state: 'connected' | 'lost', reason: string | undefined): void {
    const { bus, clock, database } = this.#dependencies;
    this.#state = state;
    this.#since = clock.now();
    this.#reason = reason;
    bus.publish(connectionChanged, { place: database.place, ...(reason !== undefined && { reason }) });
  }
}

function reasonOf(error: unknown): string {
  return isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
}

const BUCKETS = [0.005, 0.02, 0.1, 0.5, 2, 10];

/** @returns counts each query and insert */
export function measure(metrics: Metrics, isConnected: () => boolean): (observed: Observed) => void {
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
    collect: (gauge) => gauge.set(isConnected() ? 1 : 0),
  });
  return ({ work, fault, ...observed }) => {
    works.inc({ work, outcome: fault?.code ?? 'done' });
    seconds.observe({ work }, observed.seconds);
    if (work === 'insert' && !fault) rows.inc(observed.rows);
  };
}
