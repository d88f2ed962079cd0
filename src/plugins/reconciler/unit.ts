import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { consoleActions } from '../../core/contracts/console.ts';
import { RouterApiToken } from '../../core/contracts/router.ts';
import { TelemetryToken } from '../../core/contracts/telemetry.ts';
import { durationFlag } from '../../core/host/duration.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { counted } from '../../core/host/terminal.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { LONGEST_PAUSE_MS } from '../../machines/reconciler/unit.ts';
import { legActor, UNIT_KEY, unitActor } from './actors.ts';
import type { Adoption } from './adoption.ts';
import { contributePage } from './console-page.ts';
import { type Heartbeats, sendTestBeat } from './heartbeat.ts';
import { legsStatus } from './leg-status.ts';
import { lookAtLeg } from './link.ts';

export const UNIT_PATH = '/reconciler/unit';
const RESYNC_PATH = '/reconciler/resync';
/** The reason that commands give when the instance does not serve these operations. */
export const NO_RECONCILER = 'it runs no reconciler';

export const resyncRequested = defineTopic(
  'reconciler.resync_requested',
  z.object({}),
  'Every leg is to be checked: an operator asks for it, or the reconciler runs again after a pause.',
);

/** The reconciler as a whole, as its commands show it. */
export interface UnitView {
  readonly state: 'running' | 'paused';
  /** The value of the gauge. */
  readonly up: boolean;
  /** Why it is not up. */
  readonly reason?: string;
  /** When a pause ends by itself, ISO 8601. */
  readonly until?: string;
  /** Where its beats go, and to which monitor. */
  readonly beats?: { readonly place: string; readonly monitor: string };
  /** How many legs have their address, how many have it in the config and their link is not known to have it, of how many. */
  readonly legs: { readonly whole: number; readonly configured: number; readonly of: number };
  /** Whether a plugin exports its gauge. */
  readonly measured: boolean;
  /** The unit of systemd whose main process this is. */
  readonly service?: string;
}

/** What the router, read now, has of the listed legs. */
export interface LegsNow {
  /** Legs that have their address, in the config and on the link. */
  readonly whole: number;
  readonly of: number;
  /** Legs without their address, each with where it is missing. */
  readonly lacking: readonly string[];
  /** Legs whose config has the address and whose link could not be looked at, each with the reason. */
  readonly unknown: readonly string[];
  /** Why the legs are only observed. */
  readonly unconfirmed?: string;
  /** Why the config could not be read; then no leg was looked at. */
  readonly unread?: string;
}

interface UnitSettings {
  /** Monitor that gets the beats. */
  readonly monitor: string;
  /** Interfaces that are never touched. */
  readonly never: readonly string[];
}

/**
 * The reconciler as a unit that runs or is paused for a bounded time (R28). While it is paused it receives no event and
 * sends no beat; a leg that loses its address meanwhile is restored when its own resync timer fires, or when the pause
 * ends.
 */
export class Unit {
  readonly #services: Services;
  readonly #heartbeats: Heartbeats;
  readonly #adoption: Adoption;
  readonly #monitor: string;
  readonly #never: readonly string[];

  constructor(
    services: Services,
    heartbeats: Heartbeats,
    adoption: Adoption,
    { monitor, never }: UnitSettings,
  ) {
    this.#services = services;
    this.#heartbeats = heartbeats;
    this.#adoption = adoption;
    this.#monitor = monitor;
    this.#never = never;
  }

  isPaused(): boolean {
    return this.#pause() !== undefined;
  }

  /** Why the reconciler is not up; undefined when it is. */
  downReason(): string | undefined {
    const { actors, get } = this.#services;
    const pause = this.#pause();
    if (pause) return `${pause.by} stopped it`;
    const unconfirmed = this.#adoption.reason();
    if (unconfirmed !== undefined) return unconfirmed;
    if (legsStatus(actors.list(legActor)).of === 0) return 'no actor of a leg runs';
    const isSubscribed = get(RouterApiToken).isSubscribed?.() !== false;
    return isSubscribed ? undefined : 'its subscription to the router is not acknowledged';
  }

  view(): UnitView {
    const { actors, find } = this.#services;
    const pause = this.#pause();
    const reason = this.downReason();
    const { whole, configured, of } = legsStatus(actors.list(legActor));
    const { receiver } = this.#heartbeats;
    const service = serviceOf(process.env);
    return {
      state: pause ? 'paused' : 'running',
      up: reason === undefined,
      legs: { whole, configured, of },
      measured: find(TelemetryToken)?.enabled === true,
      ...(reason !== undefined && { reason }),
      ...(pause && { until: new Date(pause.until).toISOString() }),
      ...(receiver && { beats: { place: receiver.place, monitor: this.#monitor } }),
      ...(service !== undefined && { service }),
    };
  }

  /** Reads the router's config now: what the actors know is of their last reading. */
  async legsNow(): Promise<LegsNow> {
    const { legs } = this.#adoption;
    const unconfirmed = this.#adoption.reason();
    const of = legs.length;
    try {
      const api = this.#services.get(RouterApiToken);
      const config = await api.active();
      const found = await Promise.all(
        legs.map(async (leg) => ({
          ...(await lookAtLeg(api, config, leg, this.#never)),
          name: `${leg.label} (${leg.intf})`,
        })),
      );
      return {
        whole: found.filter(({ state }) => state === 'whole').length,
        of,
        lacking: found.flatMap(({ state, name }) => {
          if (state === 'missing') return [`${name} lacks it in the config`];
          return state === 'not applied' ? [`${name} has it in the config and not on the link`] : [];
        }),
        unknown: found.flatMap((leg) => (leg.state === 'unknown' ? [`${leg.name}: ${leg.reason}`] : [])),
        ...(unconfirmed !== undefined && { unconfirmed }),
      };
    } catch (error) {
      if (!isCoded(error)) throw error;
      return { whole: 0, of, lacking: [], unknown: [], unread: error.what };
    }
  }

  /** @returns why the gauge, exported now, was not taken; undefined when it was */
  async exportGauge(): Promise<string | undefined> {
    const telemetry = this.#services.find(TelemetryToken);
    return telemetry?.enabled ? telemetry.exportMetrics() : 'no plugin exports it';
  }

  /** @returns the result of one beat that is sent now */
  testBeat() {
    return sendTestBeat(this.#heartbeats.receiver, this.#monitor, this.downReason());
  }

  /** Reports the gauge that is 1 while the reconciler is up. @returns ends the reports */
  observe(): () => void {
    const telemetry = this.#services.find(TelemetryToken);
    if (!telemetry?.enabled) return () => {};
    const gauge = telemetry.meter('holdfast.reconciler').createObservableGauge('router.ula_reconcile.up', {
      description: '1 while the reconciler runs and its subscription is acknowledged.',
    });
    const report: Parameters<typeof gauge.addCallback>[0] = (result) =>
      result.observe(this.downReason() === undefined ? 1 : 0);
    gauge.addCallback(report);
    return () => gauge.removeCallback(report);
  }

  #pause() {
    const snapshot = this.#services.actors.get(unitActor, UNIT_KEY);
    return snapshot?.value === 'paused' ? snapshot.context.pause : undefined;
  }
}

/** The unit that systemd has started this very process for; of a process that it has started in turn, none. */
function serviceOf(env: NodeJS.ProcessEnv): string | undefined {
  if (env.SYSTEMD_EXEC_PID !== String(process.pid)) return undefined;
  try {
    return /\/([^/\n]+\.service)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  } catch {
    return undefined; // no cgroups are to be seen here
  }
}

interface Started extends Services {
  readonly adoption: Adoption;
  readonly heartbeats: Heartbeats;
  readonly unit: Unit;
}

const by = z.string().min(1).max(64);
const pauseBody = z.strictObject({ by, forMs: z.int().min(1_000).max(LONGEST_PAUSE_MS) });
const resumeBody = z.strictObject({ by });

/** Registers the unit's actor with its effects, operations and commands. */
export function registerUnit(context: PluginContext<Started>): void {
  context.actor(unitActor);
  context.effect('reconciler.stopped', (_params, _effect, { heartbeats }) => heartbeats.stop(), {
    onRecovery: 'retry',
  });
  context.effect(
    'reconciler.started',
    (_params, { correlation, cause }, { bus, heartbeats }) => {
      heartbeats.start();
      // Events of the pause were not received, so every leg is checked now.
      bus.publish(resyncRequested, {}, { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
  context.control((surface, { actors, adoption, bus, clock, unit }) => {
    serveOperation(surface, UNIT_PATH, z.strictObject({}), () => unit.view());
    serveOperation(surface, `${UNIT_PATH}/beat`, z.strictObject({}), () => unit.testBeat());
    serveOperation(surface, `${UNIT_PATH}/legs`, z.strictObject({}), () => unit.legsNow());
    serveOperation(surface, `${UNIT_PATH}/gauge`, z.strictObject({}), async () => ({
      fault: await unit.exportGauge(),
    }));
    serveOperation(surface, `${UNIT_PATH}/pause`, pauseBody, async ({ by, forMs }, { correlation }) => {
      const event = { type: 'PAUSE', at: clock.now(), by, forMs } as const;
      await actors.send(unitActor, UNIT_KEY, event, { correlation }).durable();
      return unit.view();
    });
    serveOperation(surface, `${UNIT_PATH}/resume`, resumeBody, async ({ by }, { correlation }) => {
      await actors.send(unitActor, UNIT_KEY, { type: 'RESUME', by }, { correlation }).durable();
      return unit.view();
    });
    serveOperation(surface, RESYNC_PATH, z.object({}), (_body, { correlation }) => {
      bus.publish(resyncRequested, {}, { correlation });
      return { correlation, legs: adoption.legs.map(({ intf }) => intf) };
    });
  });
  contributePage(context);
  context.contribute(consoleActions, {
    name: 'reconciler-resync',
    title: 'Resync all legs',
    confirm: 'Every leg is read again, and what differs from the config is put right.',
    fields: [],
    operation: RESYNC_PATH,
    body: () => ({}),
  });
  registerCommands(context);
}

function registerCommands(context: PluginContext<Started>): void {
  const show = ({ json, print }: CommandContext, unit: UnitView) => {
    if (json) return print(JSON.stringify(unit));
    const until = unit.until === undefined ? '' : `, until ${unit.until} at the latest`;
    print(`The reconciler is ${unit.state}${until}${unit.reason === undefined ? '' : `: ${unit.reason}`}.`);
  };
  context.command({
    name: 'router pause',
    summary:
      'Stops the running reconciler for a bounded time, as one stops a unit; it starts again by itself',
    example: 'holdfast router pause --for 5m',
    flags: [{ flags: '--for <time>', summary: 'at most 30m', default: '5m' }],
    run: async (_args, { for: time }, command) => {
      const forMs = durationFlag('--for', time, { least: '1s', most: '30m', command: 'router pause' });
      const body = { by: operatorName(), forMs };
      show(command, await askInstance<UnitView>(command, `${UNIT_PATH}/pause`, body, NO_RECONCILER));
    },
  });
  context.command({
    name: 'router resume',
    summary: 'Ends a pause of the reconciler',
    example: 'holdfast router resume',
    run: async (_args, _flags, command) => {
      const body = { by: operatorName() };
      show(command, await askInstance<UnitView>(command, `${UNIT_PATH}/resume`, body, NO_RECONCILER));
    },
  });
  context.command({
    name: 'router resync',
    summary: 'Has the running reconciler check every leg now, and put back what is missing',
    example: 'holdfast router resync',
    async run(_args, _flags, command) {
      const { json, print } = command;
      const result = await askInstance<Resync>(command, RESYNC_PATH, {}, NO_RECONCILER);
      if (json) return print(JSON.stringify(result));
      const { legs, correlation } = result;
      print(`${counted(legs.length, 'leg is', 'legs are')} checked: ${legs.join(', ')}`);
      print(`What comes of it: holdfast log list --correlation ${correlation}`);
    },
  });
}

interface Resync {
  readonly correlation: string;
  readonly legs: readonly string[];
}
