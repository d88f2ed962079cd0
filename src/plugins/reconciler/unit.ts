import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { RouterApiToken } from '../../core/contracts/router.ts';
import { TelemetryToken } from '../../core/contracts/telemetry.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { durationFlag } from '../../core/host/duration.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import { LONGEST_PAUSE_MS, reconcilerUnit, type UnitContext } from '../../machines/reconciler/unit.ts';
import { tryBeat } from './heartbeat.ts';

const UNIT_ACTOR = 'reconciler.unit';
const UNIT = actorRef(UNIT_ACTOR, 'ula-reconcile');
export const UNIT_PATH = '/reconciler/unit';

/** How the reconciler is as a whole, as commands are told. */
export interface UnitView {
  readonly state: 'running' | 'paused';
  /** What the gauge says. */
  readonly up: boolean;
  /** Why it is not 1. */
  readonly reason?: string;
  /** When it starts again by itself, ISO 8601. */
  readonly until?: string;
  /** Where its beats go, and as whose. */
  readonly beats?: { readonly place: string; readonly monitor: string };
  /** How many have their address, of how many. */
  readonly legs: { readonly whole: number; readonly of: number };
  /** Whether its gauge goes anywhere. */
  readonly measured: boolean;
}

export interface Unit {
  isPaused(): boolean;
  view(): UnitView;
}

interface Parts {
  /** The push monitor of its beats. */
  readonly monitor: string;
  readonly legs: () => UnitView['legs'];
  /** Its beats end and begin with it. */
  readonly beats: { readonly stop: () => void; readonly start: () => void };
}

/**
 * Registers the reconciler as a unit that runs or is stopped for a bounded time, and the gauge by which the alert knows
 * it (R28). While it is stopped it hears no event and sends no beat; the legs keep their addresses, and one that loses
 * its own is fixed by the resync that each has on a timer, or at the start.
 */
export function registerUnit(context: PluginContext, { monitor, legs, beats }: Parts): Unit {
  const paused = () => {
    const state = context.services.actors.snapshot(UNIT);
    return state?.value === 'paused' ? (state.context as unknown as UnitContext).pause : undefined;
  };
  const whyDown = (): string | undefined => {
    const pause = paused();
    if (pause) return `${pause.by} stopped it`;
    if (legs().of === 0) return 'no actor of a leg runs';
    const router = context.services.get(RouterApiToken);
    return router.isHeard?.() !== false ? undefined : 'its subscription to the router is not acknowledged';
  };
  const view = (): UnitView => {
    const { find } = context.services;
    const pause = paused();
    const reason = whyDown();
    const receiver = find(UptimeMonitorToken);
    return {
      state: pause ? 'paused' : 'running',
      up: reason === undefined,
      legs: legs(),
      measured: find(TelemetryToken)?.enabled === true,
      ...(reason !== undefined && { reason }),
      ...(pause && { until: new Date(pause.until).toISOString() }),
      ...(receiver && { beats: { place: receiver.place, monitor } }),
    };
  };

  context.actor(defineActor({ type: UNIT_ACTOR, machine: reconcilerUnit, version: 1 }));
  context.effect('reconciler.stopped', () => beats.stop(), { onRecovery: 'retry' });
  context.effect(
    'reconciler.started',
    (_params, { correlation, cause }) => {
      beats.start();
      // What was published meanwhile was not heard.
      context.services.bus.publish(resyncAsked, {}, { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
  context.control((surface) => {
    serveOperation(surface, UNIT_PATH, z.strictObject({}), view);
    serveOperation(surface, `${UNIT_PATH}/beat`, z.strictObject({}), () =>
      tryBeat(context.services.find(UptimeMonitorToken), monitor, whyDown()),
    );
    const pause = z.strictObject({
      by: z.string().min(1).max(64),
      forMs: z.int().min(1_000).max(LONGEST_PAUSE_MS),
    });
    serveOperation(surface, `${UNIT_PATH}/pause`, pause, async ({ by, forMs }) => {
      const at = context.services.clock.now();
      await context.services.actors.send(UNIT, { type: 'PAUSE', at, by, forMs }).durable();
      return view();
    });
    serveOperation(
      surface,
      `${UNIT_PATH}/resume`,
      z.strictObject({ by: z.string().min(1).max(64) }),
      async ({ by }) => {
        await context.services.actors.send(UNIT, { type: 'RESUME', by }).durable();
        return view();
      },
    );
  });
  registerCommands(context);
  registerGauge(context, () => whyDown() === undefined);
  return { isPaused: () => paused() !== undefined, view };
}

/** 1 only while it runs and hears its router; a process without a reconciler has no such gauge. */
function registerGauge(context: PluginContext, isUp: () => boolean): void {
  let end = () => {};
  context.onStart(() => {
    const telemetry = context.services.find(TelemetryToken);
    if (!telemetry?.enabled) return;
    const gauge = telemetry.meter('holdfast.reconciler').createObservableGauge('router.ula_reconcile.up', {
      description: '1 while the reconciler runs and its subscription is acknowledged.',
    });
    const observe: Parameters<typeof gauge.addCallback>[0] = (result) => result.observe(isUp() ? 1 : 0);
    gauge.addCallback(observe);
    end = () => gauge.removeCallback(observe);
  });
  context.onStop(() => end());
}

function registerCommands(context: PluginContext): void {
  const show = ({ json, print }: CommandContext, unit: UnitView) => {
    if (json) return print(JSON.stringify(unit));
    const until = unit.until === undefined ? '' : `, until ${unit.until} at the latest`;
    print(`The reconciler is ${unit.state}${until}${unit.reason === undefined ? '' : `: ${unit.reason}`}.`);
  };
  const missing = 'it runs no reconciler';
  context.command({
    name: 'router pause',
    summary: 'Stop the running reconciler for a while, as one stops a unit; it starts again by itself',
    example: 'holdfast router pause --for 5m',
    flags: [{ flags: '--for <time>', summary: 'at most 30m', default: '5m' }],
    run: async (_args, { for: time }, command) => {
      const forMs = durationFlag('--for', time, { least: '1s', most: '30m', command: 'router pause' });
      const by = operatorName();
      show(command, await askInstance<UnitView>(command, `${UNIT_PATH}/pause`, { by, forMs }, missing));
    },
  });
  context.command({
    name: 'router resume',
    summary: 'Start the reconciler again that was stopped',
    example: 'holdfast router resume',
    run: async (_args, _flags, command) => {
      const by = operatorName();
      show(command, await askInstance<UnitView>(command, `${UNIT_PATH}/resume`, { by }, missing));
    },
  });
}

const RESYNC_PATH = '/reconciler/resync';

/** Somebody at the command line wants every leg looked at, whatever the events say. */
export const resyncAsked: Topic<Record<string, never>> = defineTopic(
  'reconciler.resync_requested',
  z.object({}),
  'An operator asks for every leg to be looked at.',
);

interface Resync {
  readonly correlation: string;
  readonly legs: readonly string[];
}

/** Registers `holdfast router resync` and what it posts to, through the control socket. @param legs interfaces that are held */
export function registerResync(context: PluginContext, legs: readonly string[]): void {
  context.control((surface) => {
    serveOperation(surface, RESYNC_PATH, z.object({}), (_asked, { correlation }) => {
      context.services.bus.publish(resyncAsked, {}, { correlation });
      return { correlation, legs };
    });
  });
  context.command({
    name: 'router resync',
    summary: 'Has the running reconciler look at every leg now, and put back what is missing',
    example: 'holdfast router resync',
    async run(_args, _flags, command) {
      const { json, print } = command;
      const body = await askInstance<Resync>(command, RESYNC_PATH, {}, 'it runs no reconciler');
      if (json) return print(JSON.stringify(body));
      print(`${legs.length} legs are looked at: ${legs.join(', ')}`);
      print(`What comes of it: holdfast log list --correlation ${body.correlation}`);
    },
  });
}
