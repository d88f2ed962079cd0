import { resolve } from 'node:path';
import { Bus } from '../../../bus/bus.ts';
import { type Clock, newCorrelation, systemClock } from '../../kernel/clock.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { lockDataDir } from '../../kernel/log/lock.ts';
import { SqliteLog } from '../../kernel/log/sqlite-log.ts';
import { version } from '../../kernel/version.ts';
import { CertificateWatch } from '../certificates/watch.ts';
import { ClockLooks } from '../clock/looks.ts';
import { endsWithin } from '../deadline.ts';
import { HostError } from '../errors/host-error.ts';
import type { Place } from '../http/contract.ts';
import { makeSenders } from '../http/peer.ts';
import { PendingReplies } from '../http/pending-replies.ts';
import { compareBeforeStart, noteAtStop } from '../integrity/compare.ts';
import { textOf } from '../integrity/findings.ts';
import { beginRun } from '../lifecycle/run.ts';
import { createLogger, type Logger } from '../logging/logger.ts';
import { Metrics } from '../metrics/metrics.ts';
import type { ConfiguredPlugin, OptionsFile } from '../plugin/definition.ts';
import { PluginHost, type RuntimeServices } from '../plugin/host.ts';
import type { Registrations } from '../plugin/registrations.ts';
import type { RetentionSettings } from '../retention/settings.ts';
import { openVault, type Vault } from '../secrets/vault.ts';
import type { WitnessSettings } from '../witness/settings.ts';
import { AlertsOfHost } from './alerts-of-host.ts';
import { Checkpoints } from './checkpoints.ts';
import { DataUpkeep } from './data-upkeep.ts';
import { MovingControls } from './moving-controls.ts';
import { type RecoveredEffects, recoverActors } from './recover-actors.ts';
import { Routes } from './routes.ts';
import { removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts';
import { startSchedules } from './schedules.ts';
import { Singletons } from './singletons.ts';
import { dataControl, Surfaces } from './surfaces.ts';
import { observeActors, observeAlerts, observeBus, observeLog } from './wiring.ts';

/** What a runtime consists of, and where it keeps its data. @public */
export interface RuntimeOptions {
  /** The plugins with their options, as `loadConfig` gives them. */
  readonly plugins: readonly ConfiguredPlugin[];
  /** Holds the log, the embedded stores and the generated keys; made when absent. */
  readonly dataDir: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Where the plugins' options come from, for those that take changes up while they run. */
  readonly configFile?: OptionsFile | undefined;
  /** How long a `batched` record may wait for others to share its commit, milliseconds; 40 unless set. */
  readonly lingerMs?: number;
  /** The log is signed at least every so many records, and at a stop; 1,000 unless set. */
  readonly signEvery?: number;
  /** How long the disk may take for one commit before requests are refused, milliseconds; 5,000 unless set. */
  readonly patienceMs?: number;
  /** Actors are saved every so many records, so that a start reads no more than that; 10,000 unless set. */
  readonly checkpointEvery?: number;
  /** When old records are archived automatically, and archives deleted; never unless set. `loadConfig` gives the default. */
  readonly retention?: RetentionSettings | undefined;
  /** Room on the disk that is kept for the log, bytes; none unless set. `loadConfig` gives the default. */
  readonly reserveBytes?: number | undefined;
  /** Where the signed heads of the log go; nowhere unless set. */
  readonly witness?: WitnessSettings | undefined;
}

/** Options that may be missing while it runs. */
type Optional = 'retention' | 'witness' | 'reserveBytes';

/** How long running requests and effects may take at a stop, milliseconds. */
const DRAIN_MS = 5_000;
/** Longer than any step of a stop takes when nothing is wrong, plugins' own deadlines included. */
const STEP_MS = 30_000;

/**
 * Builds a runtime from its plugins; nothing runs before `start` (`docs/architecture.md`, The life of a runtime).
 *
 * @example
 * const runtime = createRuntime({ ...(await loadConfig()), dataDir: '.holdfast' });
 * await runtime.start();
 *
 * @throws HF_PLUGIN_* the plugins do not fit together
 * @public
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new Runtime(options);
}

/** One running Holdfast: the log, the actors, the plugins and their surfaces. @public */
export class Runtime {
  readonly registrations: Registrations;
  readonly #options: Required<Omit<RuntimeOptions, Optional | 'plugins' | 'configFile'>> &
    Pick<RuntimeOptions, Optional>;
  readonly #configFile: OptionsFile | undefined;
  readonly #plugins: readonly ConfiguredPlugin[];
  readonly #host: PluginHost;
  /** The work that can be on another host; absent without a cluster. */
  readonly #singletons: Singletons | undefined;
  readonly #undo: (() => unknown)[] = [];
  readonly #senders = makeSenders();
  #services: RuntimeServices | undefined;
  #surfaces: Surfaces | undefined;
  #stopping: Promise<readonly HoldfastError[]> | undefined;
  #reason = '';
  #isReady = false;
  readonly #upkeep: DataUpkeep;
  #stopErrors: readonly HoldfastError[] = [];

  constructor({ plugins, dataDir, configFile, ...rest }: RuntimeOptions) {
    this.#configFile = configFile;
    this.#plugins = plugins;
    this.#options = {
      clock: systemClock,
      logger: rest.logger ?? createLogger(),
      lingerMs: 40,
      signEvery: 1_000,
      patienceMs: 5_000,
      checkpointEvery: 10_000,
      ...rest,
      dataDir: resolve(dataDir),
    };
    this.#host = new PluginHost(plugins, { clock: this.#options.clock });
    this.registrations = this.#host.register();
    const overwritten = this.registrations.overwrittenFiles.map(({ path }) => path);
    this.#upkeep = new DataUpkeep({ ...this.#options, overwritten });
    this.#singletons = this.#host.isClustered ? new Singletons(this.#host) : undefined;
  }

  /** What plugins get, for programs that embed the runtime and for tests. */
  get services(): RuntimeServices {
    if (!this.#services) throw new Error('the runtime has not been started');
    return this.#services;
  }

  /** Where each surface listens, by name. */
  get surfaces(): Readonly<Record<string, Place>> {
    return this.#surfaces?.urls ?? {};
  }

  /** What plugins contribute to health pages, by name. */
  health(): ReturnType<PluginHost['health']> {
    return this.#host.health();
  }

  /** The plugins in the order of their start, with milliseconds. */
  bootReport(): string[] {
    return this.#host.report();
  }

  /**
   * Locks the data folder, recovers, starts the plugins, resumes what was left open, and listens.
   *
   * @throws HF_LOG_LOCKED another process has the folder; HF_LOG_CORRUPT, HF_LOG_UNTRUSTED, HF_LOG_FORMAT, HF_MACHINE_VERSION;
   * HF_PLUGIN_* a plugin that must not fail did; HF_HTTP_LISTEN a port is taken
   */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      await this.stop('start failed');
      throw error;
    }
  }

  /**
   * Drains the surfaces, lets running effects end, stops the plugins in reverse and closes the log. What cannot end
   * in time stays open in the log, and the next start resumes it.
   *
   * @param reason recorded, e.g. `SIGTERM`
   * @returns what went wrong on the way
   */
  stop(reason: string): Promise<readonly HoldfastError[]> {
    this.#stopping ??= this.#stop(reason);
    return this.#stopping;
  }

  /** The stages in the order of `docs/architecture.md`, The life of a runtime. Each notes how a stop undoes it. */
  async #start(): Promise<void> {
    const startedAt = new Date(this.#options.clock.now()).toISOString();
    const { log, vault } = this.#openDataFolder();
    const { services, effects, checkpoints, routes } = this.#recover(log, vault);
    this.#beginRecordingRun(services, checkpoints);
    await this.#checkForeignMachines();
    await this.#host.start(services);
    routes.join(this.#host.cluster());
    this.#undo.push(() => effects.stop(DRAIN_MS));
    effects.resume();
    const controls = this.#movingControls();
    await this.#listen(services, controls);
    this.#startRecurringWork(services);
    this.#announceReady(startedAt, new CertificateWatch(() => this.surfaces, services));
    this.#compete(services, effects, controls);
  }

  /** In development alone: production neither loads the check nor spends time on it. */
  async #checkForeignMachines(): Promise<void> {
    if (process.env.NODE_ENV === 'production') return;
    const { reportImpureMachines } = await import('../plugin/foreign-machines.ts');
    reportImpureMachines(this.#plugins, this.registrations.actors, this.#options.logger);
  }

  /** Locks the data folder, so that no other process writes to it, and opens what lies in it. */
  #openDataFolder(): { readonly log: SqliteLog; readonly vault: Vault } {
    const { dataDir, clock, logger, lingerMs, signEvery, patienceMs, checkpointEvery } = this.#options;
    this.#undo.push(lockDataDir(dataDir));
    for (const finding of compareBeforeStart(dataDir))
      logger.error({ ...finding, text: textOf(finding) }, 'data.finding');
    // What a start leaves that was refused is no state to compare the next one with.
    // When the log is closed, it has signed its last record.
    this.#undo.push(() => this.#upkeep.sendLastHead());
    this.#undo.push(() => (this.#isReady ? noteAtStop(dataDir) : undefined));
    const vault = openVault(dataDir, this.#host.fingerprintKey());
    const log = new SqliteLog({ dataDir, lingerMs, signEvery, patienceMs, checkpointEvery, clock });
    this.#undo.push(() => log.close());
    return { log, vault };
  }

  /** Brings the actors to where the log left them, and connects the bus, the log and the metrics to them. */
  #recover(log: SqliteLog, vault: Vault) {
    const { dataDir, clock, logger } = this.#options;
    const bus = new Bus(newCorrelation);
    const metrics = new Metrics();
    const pendingReplies = new PendingReplies();
    const parts = { bus, log, pendingReplies, vault, clock, metrics, logger, dataDir };
    const singletons = this.#singletons;
    const alerts = this.#alertsOfHost();
    const { actors, effects } = recoverActors(this.registrations, {
      ...{ ...parts, singletons, alerts },
      senders: this.#senders,
    });
    const checkpoints = new Checkpoints(log, actors, bus);
    observeLog(log, alerts.publisher(bus), metrics, logger);
    log.onFrozen((reason) => {
      if (reason !== undefined) pendingReplies.failAll(new HostError('HF_LOG_WAITING', { reason }));
    });
    observeActors(actors, metrics);
    observeBus(bus, metrics, logger);
    observeAlerts(bus, logger);
    metrics.start();
    this.#undo.push(() => metrics.stop());
    const services: RuntimeServices = {
      ...parts,
      actors,
      configFile: this.#configFile,
      surfaces: () => this.surfaces,
    };
    this.#services = services;
    const routes = new Routes(this.registrations.routes, services, singletons);
    return { services, effects, checkpoints, routes };
  }

  #alertsOfHost(): AlertsOfHost {
    return new AlertsOfHost(
      () => this.#host.cluster()?.host,
      (type) => this.#singletons?.singletonOf(type) !== undefined,
      this.registrations.routes,
    );
  }

  /** Records that a run begins, before a plugin starts; the undo steps end the run after the last plugin has stopped. */
  #beginRecordingRun({ actors, log, clock, logger }: RuntimeServices, checkpoints: Checkpoints): void {
    const endRun = beginRun(actors, clock, logger);
    this.#undo.push(
      // A log that cannot be written would keep the stop waiting; the next start folds the records instead.
      () => (log.status().state === 'open' ? checkpoints.save() : undefined),
      () => endRun(this.#reason),
      async () => {
        this.#stopErrors = await this.#host.stop(this.#reason);
      },
    );
  }

  /** Opens the surfaces, the other listeners and the control socket of the plugins that have started. */
  async #listen(services: RuntimeServices, moving: MovingControls): Promise<void> {
    const surfaces = new Surfaces(
      this.#host.started(this.registrations.surfaces),
      this.#host.started(this.registrations.listeners),
      [
        { owner: 'core', build: (surface) => dataControl(surface, services, () => this.#upkeep.check()) },
        ...this.#host.alwaysHere(this.registrations.controls),
      ],
      moving,
      { ...services, senders: this.#senders },
      (plugin, error) => this.#host.surfaceFailed(plugin, error),
    );
    this.#surfaces = surfaces;
    this.#undo.push(() => surfaces.close(DRAIN_MS));
    await surfaces.listen();
  }

  /** What happens by the clock: the plugins' schedules, looks at the clock, and the upkeep of the data folder. */
  #startRecurringWork(services: RuntimeServices): void {
    const { actors, bus, clock } = services;
    const schedules = this.#host.alwaysHere(this.registrations.schedules);
    this.#undo.push(startSchedules(schedules, bus, clock, (listener) => actors.onClockJump(listener)));
    const watch = new ClockLooks(services);
    this.#host.addFact('clock', () => watch.fact());
    this.#undo.push(() => watch.stop());
    const addFact = this.#host.addFact.bind(this.#host);
    const onStop = (step: () => unknown) => void this.#undo.push(step);
    this.#upkeep.start(services, { publisher: this.#alertsOfHost().publisher(bus), addFact, onStop });
  }

  #movingControls(): MovingControls {
    const movable = this.#host.movable();
    const moving = new Map<string, string>();
    for (const { owner, singleton } of this.registrations.controls) {
      if (singleton !== undefined && movable.has(singleton)) moving.set(owner, singleton);
    }
    return new MovingControls(moving, this.#options.logger, (plugin, singleton) =>
      this.#host.elsewhere(plugin, singleton),
    );
  }

  /** From here on singletons begin and end here. A stop ends them first, so that the cluster can let others have them. */
  #compete(services: RuntimeServices, effects: RecoveredEffects, controls: MovingControls): void {
    const [singletons, cluster] = [this.#singletons, this.#host.cluster()];
    if (!singletons || !cluster) return;
    this.#undo.push(() => singletons.stop(this.#reason));
    singletons.compete({ cluster, services, effects, controls });
  }

  /** Lets other processes find this one, and the plugins begin what needs all of it. */
  #announceReady(startedAt: string, certificates: CertificateWatch): void {
    const { dataDir, logger } = this.#options;
    this.#isReady = true;
    const announce = () =>
      writeRuntimeFile(dataDir, { pid: process.pid, startedAt, version, surfaces: this.surfaces });
    announce();
    const surfaces = this.#surfaces;
    if (surfaces) {
      surfaces.onChange = () => {
        certificates.look();
        announce();
      };
    }
    this.#undo.push(() => {
      certificates.stop();
      if (surfaces) surfaces.onChange = undefined;
      removeRuntimeFile(dataDir);
    });
    for (const { owner, work } of this.#host.started(this.registrations.readyWork)) {
      try {
        work();
      } catch (error) {
        logger.error({ plugin: owner, err: error }, 'plugin.ready_failed');
      }
    }
  }

  async #stop(reason: string): Promise<readonly HoldfastError[]> {
    this.#reason = reason;
    for (const undo of this.#undo.toReversed()) {
      try {
        await this.#inTime(undo);
      } catch (error) {
        this.#options.logger.error({ error }, 'runtime.stop_failed');
      }
    }
    return this.#stopErrors;
  }

  /** One step of a stop; one that hangs is given up, so that the others still happen. */
  async #inTime(undo: () => unknown): Promise<void> {
    const ended = await endsWithin(STEP_MS, Promise.resolve(undo()));
    if (!ended) this.#options.logger.error({ ms: STEP_MS }, 'runtime.stop_step_hangs');
  }
}
