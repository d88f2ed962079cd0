import { z } from 'zod';
import type { Bus } from '../../bus/bus.ts';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { SIGNAL_TABLES } from '../../core/contracts/columnar-tables.ts';
import type { Logger } from '../../core/host/logging/logger.ts';
import type { Metrics } from '../../core/host/metrics/metrics.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { EpochMs } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { connection, type LossAlert } from '../../machines/connection.ts';
import type { Database, Observed } from './database.ts';

const ACTOR = 'columnar.connection';
const KEY = 'database';
const alert: LossAlert = {
  name: 'columnar.unreachable',
  text: 'The columnar database cannot be reached: signals are neither stored nor found.',
};
/** A database that does not answer this simple a question for so long is away. */
const LOOK_SECONDS = 5;

const change = z.object({ place: z.string(), reason: z.string().optional() });

/** Published at the start, and whenever the database goes or comes. */
const columnarConnectionChanged: Topic<z.infer<typeof change>> = defineTopic(
  'columnar.connection',
  change,
  'The columnar database answers, or is away for a reason.',
);

/** The actor by which the log tells whether the database was there. */
export function registerConnection(context: PluginContext): void {
  context.actor(
    defineActor({
      type: ACTOR,
      machine: connection,
      version: 1,
      describe,
      input: () => ({ alert: { ...alert } }),
    }),
  );
  context.route(
    defineRoute(columnarConnectionChanged, ACTOR, ({ payload: { place: store, reason } }) => [
      {
        key: KEY,
        event: reason === undefined ? { type: 'CONNECTED', store } : { type: 'LOST', store, reason },
      },
    ]),
  );
}

function describe({ event }: LogRecord): string | undefined {
  if (event.type === 'CONNECTED') return `the columnar database (${event.store}) answers`;
  if (event.type === 'LOST') return `the columnar database (${event.store}) is away: ${event.reason}`;
  return event.type === 'effect.done' ? '' : undefined;
}

interface WatchParts {
  readonly database: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly checkMs: number;
  /** The next call makes a new connection. */
  readonly reconnect: () => void;
}

/** Looks from time to time whether the database answers, and at once when a piece of work found that it does not. */
export class ConnectionWatch {
  readonly #parts: WatchParts;
  #state: 'unknown' | 'there' | 'away' = 'unknown';
  #since: EpochMs;
  #reason: string | undefined;
  /** What the tables lack, while the database itself is there. */
  #schemaFault: string | undefined;
  #looking: Promise<void> | undefined;
  #cancel = () => {};
  #stopped = false;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
  }

  /** The first look is not waited for: a server that is away keeps nobody from starting. */
  start(): void {
    void this.look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#looking;
  }

  get isThere(): boolean {
    return this.#state === 'there';
  }

  /** For the health page. */
  health(): JsonObject {
    const { kind, place } = this.#parts.database;
    const reason = this.#reason ?? this.#schemaFault;
    return {
      // Before the first answer nothing is known to be wrong.
      ok: this.#state !== 'away' && this.#schemaFault === undefined,
      state: this.#state,
      kind,
      place,
      since: new Date(this.#since).toISOString(),
      ...(reason !== undefined && { reason }),
    };
  }

  /** One look at a time; who asks meanwhile waits for it. */
  look(): Promise<void> {
    this.#cancel();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      if (this.#stopped) return;
      this.#cancel = this.#parts.clock.after(this.#parts.checkMs, () => void this.look());
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { database, reconnect } = this.#parts;
    try {
      await database.query('SELECT 1', {}, { maxSeconds: LOOK_SECONDS });
    } catch (error) {
      // Credentials and authorities may have been renewed.
      reconnect();
      return this.#away(isCoded(error) ? error.what.replace(/\.$/, '') : String(error));
    }
    if (this.#stopped) return;
    if (this.#state !== 'there') database.forgetSchema();
    await this.#schema();
    this.#there();
  }

  async #schema(): Promise<void> {
    const { database, logger } = this.#parts;
    try {
      for (const table of SIGNAL_TABLES) await database.schema(table);
      if (this.#state !== 'there')
        for (const { what } of database.notes) logger.warn({ reason: what }, 'columnar.schema_not_renewed');
      this.#schemaFault = undefined;
    } catch (error) {
      const fault = isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
      if (fault !== this.#schemaFault && !this.#stopped) logger.warn({ reason: fault }, 'columnar.schema');
      this.#schemaFault = fault;
    }
  }

  #there(): void {
    if (this.#state === 'there' || this.#stopped) return;
    this.#turn('there', undefined);
    this.#parts.logger.info({ place: this.#parts.database.place }, 'columnar.connected');
  }

  #away(reason: string): void {
    if (this.#stopped) return;
    if (this.#state === 'away') this.#reason = reason;
    else {
      this.#turn('away', reason);
      this.#parts.logger.warn({ place: this.#parts.database.place, reason }, 'columnar.lost');
    }
  }

  #turn(state: 'there' | 'away', reason: string | undefined): void {
    const { bus, clock, database } = this.#parts;
    this.#state = state;
    this.#since = clock.now();
    this.#reason = reason;
    bus.publish(columnarConnectionChanged, {
      place: database.place,
      ...(reason !== undefined && { reason }),
    });
  }
}

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
