import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { jobRepeated } from '../../core/contracts/jobs.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { withDeadline } from '../../core/host/deadline.ts';
import { identityOf } from '../../core/host/identity.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import { arrivalsAfter, DEADLINE_MS, type WatchdogContext } from '../../machines/watchdog/run.ts';
import { runActor } from './actor.ts';
import { absentReason, checkStack, type WatchdogOptions } from './checks.ts';
import { rowOf, STORE_SECONDS } from './report.ts';

/** The longest time without a recorded run, milliseconds: the run that begins a full hour after one is recorded. */
const REPORT_MS = 3_450_000;

/** What a recorded run takes over of the runs before it. */
export interface Unrecorded {
  /** How many runs there were since the last record. */
  readonly looks: number;
  /** How tables got their rows in them. */
  readonly arrivals?: WatchdogContext['arrivals'];
}

/**
 * Runs of the watchdog that find and do what the one before did: the stack is healthy, and the heartbeat arrives. They
 * are counted, and the next recorded run carries their number. A run that finds anything else is made again by the
 * machine, which records and decides it.
 */
export class QuietRuns {
  readonly #services: Services;
  readonly #options: WatchdogOptions;
  readonly #stop = new AbortController();
  #unrecorded: Unrecorded = { looks: 0 };
  #isRunning = false;
  /** The newest heartbeat that such a run sent. */
  delivered: { readonly at: number; readonly msg: string } | undefined;

  constructor(services: Services, options: WatchdogOptions) {
    this.#services = services;
    this.#options = options;
    services.actors.onClockJump(({ byMs }) => {
      if (this.delivered) this.delivered = { ...this.delivered, at: this.delivered.at + byMs };
    });
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Whether a run that is due now may be one: the last recorded run was healthy, delivered, and within the hour. */
  applies(): boolean {
    const { actors, clock } = this.#services;
    const run = actors.get(runActor, this.#options.monitor);
    const age = clock.now() - (run?.context.deliveredAt ?? 0);
    return run?.value === 'delivered' && age >= 0 && age < REPORT_MS;
  }

  /** The count for a run that is recorded, which begins anew. */
  take(): Unrecorded {
    const taken = this.#unrecorded;
    this.#unrecorded = { looks: 0 };
    return taken;
  }

  /** A run is due. Never rejects. */
  async due(): Promise<void> {
    if (this.#isRunning || !this.applies()) return;
    const { actors, bus, clock, logger } = this.#services;
    const { monitor: job } = this.#options;
    const correlation = newCorrelation();
    this.#isRunning = true;
    bus.publish(jobRepeated, { phase: 'started', job, at: clock.now() }, { correlation });
    const isSame = await this.#run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) logger.warn({ err: error, correlation }, 'watchdog.run');
      return false;
    });
    this.#isRunning = false;
    if (this.#stop.signal.aborted) return;
    if (isSame) bus.publish(jobRepeated, { phase: 'ended', job, at: clock.now() }, { correlation });
    else {
      bus.publish(jobRepeated, { phase: 'recorded', job, at: clock.now() }, { correlation });
      actors.send(runActor, job, { type: 'RUN', at: clock.now() }, { correlation });
    }
  }

  async #run(): Promise<boolean> {
    const { actors, clock, dataDir, find, logger, plugins } = this.#services;
    const late = () => new Error(`the run took longer than ${DEADLINE_MS / 1_000} s`);
    const deadline = { ms: DEADLINE_MS, clock, late, signal: this.#stop.signal };
    return withDeadline(deadline, async (signal) => {
      const began = clock.now();
      const context = actors.get(runActor, this.#options.monitor)?.context;
      const { produced = [], unknown } = context ?? {};
      const before = this.#unrecorded.arrivals ?? context?.arrivals;
      const expected = { ...this.#options, produced, steady: steadyOf(before) };
      const database = find(ColumnarDatabaseToken);
      const found = await checkStack(database, absentReason(plugins()), expected, signal);
      const at = clock.now();
      const arrivals = arrivalsAfter(before, found.ages ?? {}, at);
      const hasNews =
        found.failures.length > 0 ||
        (found.produced ?? []).length > 0 ||
        tablesOf(found.unknown) !== tablesOf(unknown) ||
        steadyOf(arrivals).length !== steadyOf(before).length;
      if (hasNews || signal.aborted) return false;
      const msg = `stale=${found.stale}s drift=${found.drift}`;
      const beat = { status: 'up', msg, ping: Math.max(0, at - began) } as const;
      const answer = await find(UptimeMonitorToken)?.pushEvent(this.#options.monitor, beat, signal);
      if (answer?.type !== 'PUSHED') return false;
      this.#unrecorded = { looks: this.#unrecorded.looks + 1, ...(arrivals && { arrivals }) };
      this.delivered = { at: answer.at, msg };
      logger.info({ outcome: 'delivered', line: msg, looks: this.#unrecorded.looks }, 'watchdog.run');
      const lines = [msg, '{"ok":true}', ...(found.unknown ?? []).map((text) => `UNKNOWN: ${text}`)];
      const report = { outcome: 'delivered', lines, exitCode: 0, startedAt: began } as const;
      await database
        ?.insert('otel_logs', [rowOf(report, at, identityOf(dataDir))], { maxSeconds: STORE_SECONDS, signal })
        .catch((error: unknown) => logger.debug({ err: error }, 'watchdog.line_not_stored'));
      return true;
    });
  }
}

function steadyOf(arrivals: WatchdogContext['arrivals']): string[] {
  return Object.entries(arrivals ?? {}).flatMap(([table, { steady }]) => (steady ? [table] : []));
}

/** The tables of sentences on what is unknown; how old their rows are changes with each run. */
function tablesOf(unknown: readonly string[] = []): string {
  return unknown.map((text) => text.split(':')[0]).join();
}
