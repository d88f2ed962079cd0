import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, passed } from '../../../core/kernel/clock.ts';
import type { Dialler } from './dial.ts';
import type { Dialled } from './dialled.ts';

/** A subscription as it was asked for, and as it stands on the present connection. */
interface Interest {
  readonly subject: string;
  readonly deliver: (message: Msg) => void | Promise<void>;
  current?: Subscription | undefined;
}

const BEAT_MS = 400;
/** So many beats without an answer, and the connection is taken for lost. */
const MISSED_BEATS = 4;
/** More bytes than the beats of other hosts came within a beat: the answer is behind a message that is large for this link. */
const LARGE_BYTES = 16 * 1024;
/** So many beats an answer may be behind. */
const MOST_BEHIND = 25;
/** Between two rounds of attempts to connect. */
const PAUSE_MS = 200;
/** What is closed may not hold up what comes next. */
const CLOSE_MS = 1_000;

/**
 * Keeps a connection to one of the servers of NATS (docs/cluster.md, "Beats"). One that is lost, or does not answer for two
 * seconds, is closed and never used again; the next one has the same subscriptions. The client's own way back is not used: it keeps
 * what is sent meanwhile and sends it later, and may not notice a loss while its socket is full.
 */
export class KeptConnection {
  readonly #dialler: Dialler;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lines: SparseLines;
  readonly #listeners = new Set<(isUp: boolean) => void>();
  readonly #interests = new Set<Interest>();
  #current: NatsConnection | undefined;
  #isBehind = false;
  #problem = 'it has not answered yet';
  #isClosed = false;
  #cancel: () => void = () => {};

  constructor(dialler: Dialler, clock: Clock, logger: Logger) {
    this.#dialler = dialler;
    this.#clock = clock;
    this.#logger = logger;
    this.#lines = new SparseLines(clock);
  }

  get current(): NatsConnection | undefined {
    return this.#current;
  }

  /** Whether answers come late because something large comes before them. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Why there is none, without secrets. */
  get problem(): string {
    return this.#problem;
  }

  /** Begins to connect, and never ceases to try until it is closed. */
  start(): void {
    if (this.#isClosed) return;
    this.#dialler.dial().then(
      (dialled) => this.#connected(dialled),
      (error: Error) => {
        this.#failed(error.message);
        const isRound = this.#dialler.failed % this.#dialler.count === 0;
        if (!this.#isClosed) this.#cancel = this.#clock.after(isRound ? PAUSE_MS : 0, () => this.start());
      },
    );
  }

  /** Calls back with each change, and when it is closed. @returns ends that */
  onChange(listener: (isUp: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @returns whether there is a connection, after waiting for one at most this long, milliseconds */
  async ready(timeoutMs: number): Promise<boolean> {
    if (this.#current || this.#isClosed) return this.#current !== undefined;
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        end();
        resolve(this.#current !== undefined);
      };
      const cancel = this.#clock.after(timeoutMs, done);
      const end = this.onChange(done);
    });
  }

  /** Subscribes now and on each later connection. What throws is logged. @returns ends it */
  listen(subject: string, deliver: Interest['deliver']): () => void {
    const interest: Interest = { subject, deliver };
    this.#interests.add(interest);
    if (this.#current) this.#subscribe(this.#current, interest);
    return () => {
      this.#interests.delete(interest);
      if (interest.current && !interest.current.isClosed()) interest.current.unsubscribe();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#problem = 'it is closed';
    const connection = this.#current;
    this.#leave();
    this.#notify(false); // who waits for a connection waits no longer
    if (connection) await this.#end(connection);
    this.#listeners.clear();
    this.#interests.clear();
  }

  #connected(dialled: Dialled): void {
    const { connection } = dialled;
    if (this.#isClosed) {
      void this.#end(connection);
      return;
    }
    this.#current = connection;
    connection.closed().then(
      (error) => this.#lost(connection, error?.message ?? 'the connection was lost'),
      () => this.#lost(connection, 'the connection was lost'),
    );
    this.#watchErrors(connection);
    for (const interest of this.#interests) this.#subscribe(connection, interest);
    this.#logger.info({ server: connection.getServer() }, 'cluster.nats.connected');
    this.#lines.reset();
    this.#beat(dialled);
    this.#notify(true);
  }

  /** Counts unanswered beats instead of time, so that a process that was stopped itself does not blame the server. */
  #beat(dialled: Dialled): void {
    const { connection, received } = dialled;
    let isAnswered = false;
    connection.flush().then(
      () => {
        isAnswered = true;
      },
      () => {}, // `closed` says so, too
    );
    const look = (looks: number, missed: number) => {
      const before = received();
      this.#cancel = this.#clock.after(BEAT_MS, () => {
        if (this.#current !== connection) return;
        this.#isBehind = !isAnswered && received() - before > LARGE_BYTES && looks < MOST_BEHIND;
        if (isAnswered) this.#beat(dialled);
        else if (this.#isBehind) look(looks + 1, 1);
        else if (missed < MISSED_BEATS) look(looks + 1, missed + 1);
        else this.#lost(connection, `no answer for ${looks * BEAT_MS} ms`);
      });
    };
    look(1, 1);
  }

  #lost(connection: NatsConnection, reason: string): void {
    if (this.#current !== connection) return;
    this.#leave();
    void this.#end(connection);
    this.#failed(reason);
    this.#notify(false);
    this.start();
  }

  #leave(): void {
    this.#cancel();
    this.#isBehind = false;
    this.#current = undefined;
    for (const interest of this.#interests) interest.current = undefined;
  }

  #failed(reason: string): void {
    if (this.#isClosed) return;
    this.#problem = reason;
    if (this.#lines.isDue()) this.#logger.warn({ reason }, 'cluster.nats.unreachable');
  }

  /** A socket that nobody reads may never say that it is closed. */
  async #end(connection: NatsConnection): Promise<void> {
    const closed = connection.close().catch(() => {});
    await Promise.race([closed, passed(this.#clock, CLOSE_MS)]);
  }

  #subscribe(connection: NatsConnection, interest: Interest): void {
    const { subject } = interest;
    const threw = (error: unknown) => this.#logger.error({ subject, err: error }, 'cluster.nats.handler');
    // A throw would end the reader of the whole connection.
    const callback = (error: Error | null, message: Msg) => {
      if (error) {
        this.#logger.error({ subject, reason: error.message }, 'cluster.nats.subscription');
        return;
      }
      try {
        const handled = interest.deliver(message);
        if (handled instanceof Promise) handled.catch(threw);
      } catch (thrown) {
        threw(thrown);
      }
    };
    try {
      interest.current = connection.subscribe(subject, { callback });
    } catch (error) {
      threw(error); // the connection was lost this moment; the next one subscribes again
    }
  }

  /** What the server reports, e.g. a permission that is missing. */
  #watchErrors(connection: NatsConnection): void {
    const watch = async () => {
      for await (const status of connection.status()) {
        if (status.type === 'error')
          this.#logger.warn({ reason: status.error.message }, 'cluster.nats.error');
      }
    };
    watch().catch(() => {});
  }

  #notify(isUp: boolean): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(isUp);
      } catch (error) {
        this.#logger.error({ err: error }, 'cluster.nats.handler');
      }
    }
  }
}

/** What goes on is logged this often. */
const AGAIN_MS = 30_000;

/** Says of something that happens again and again when a line about it is due. */
export class SparseLines {
  readonly #clock: Clock;
  readonly #everyMs: number;
  #last: number | undefined;

  constructor(clock: Clock, everyMs = AGAIN_MS) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  isDue(): boolean {
    const now = this.#clock.monotonic();
    if (this.#last !== undefined && now - this.#last < this.#everyMs) return false;
    this.#last = now;
    return true;
  }

  reset(): void {
    this.#last = undefined;
  }
}
