/**
 * The reconciler: keeps a static IPv6 address on each listed leg of the router; every save of the phone app drops these
 * addresses
 * (R24–R26). It holds the fields of the option `keep` in the same way. The machine `reconciler-leg` decides, one actor a leg; `router-access.ts` combines the legs' requests into
 * one read and one post. It works with every plugin that provides the router's API.
 */
import {
  RouterApiToken,
  type RouterChange,
  routerApiRecovered,
  routerChannels,
  routerConnected,
} from '../../core/contracts/router.ts';
import { TelemetryToken } from '../../core/contracts/telemetry.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import { jsonEqual } from '../../core/kernel/json.ts';
import type { LegContext, LegSettings } from '../../machines/reconciler/leg-shapes.ts';
import { legActor } from './actors.ts';
import { adoptCommand } from './adopt-command.ts';
import { Adoption, registerAdoption } from './adoption.ts';
import { registerAppSave } from './app-save.ts';
import { drillAppSave } from './app-save-command.ts';
import { DroppedWatch, registerDropped } from './dropped.ts';
import { legMetrics, registerEffects } from './effects.ts';
import { ReconcilerError } from './errors.ts';
import { Heartbeats, registerHeartbeat } from './heartbeat.ts';
import { LegLooks } from './leg-looks.ts';
import { legsCheck, legsStatus } from './leg-status.ts';
import { legSettings, reconcilerOptions } from './options.ts';
import { registerReapply } from './reapply.ts';
import { deployUla, drillUla } from './rollout.ts';
import { LegPoster } from './router-access.ts';
import { registerUnit, resyncRequested, Unit } from './unit.ts';
import { SINGLETON } from './write.ts';

/** Every host is connected to the router and hears it. */
const SEEN_BY_EACH_HOST = { ownHost: true } as const;

/**
 * The plugin `reconciler`: holds legs to their static address, and beats while it does.
 *
 * @public
 */
export const reconciler = definePlugin({
  name: 'reconciler',
  about: {
    area: 'Router',
    what: 'holds legs to their static address, and beats while it does',
    docs: 'guides/reconcile-a-real-router.md',
  },
  options: reconcilerOptions,
  errors: ReconcilerError,
  requires: [RouterApiToken],
  wants: [UptimeMonitorToken, TelemetryToken],
  singleton: SINGLETON,
  start(services, options) {
    const { clock, log, metrics } = services;
    const { batchMs, pushMonitor: monitor, pushIdleMs: idleMs } = options;
    const { place } = services.get(RouterApiToken);
    const adoption = new Adoption(services, legSettings(options, place), place);
    const heartbeats = new Heartbeats(services, { monitor, idleMs });
    const unit = new Unit(services, heartbeats, adoption, { monitor, never: options.never });
    const dropped = new DroppedWatch(services, adoption, options.droppedAlerts);
    const poster = new LegPoster({
      onRead: (config) => dropped.read(config),
      onPost: (body, read) => dropped.willPost(body, read),
      never: options.never,
      api: services.get(RouterApiToken),
      clock,
      batchMs,
      // The legs' records may need several commits, and a leg's effect runs when its own record is durable.
      decided: () => log.whenDurable(log.lastSeq()),
      random: Math.random,
    });
    if (!unit.isPaused()) heartbeats.start();
    adoption.list(options.adopted);
    resumeLegs(adoption.settings(), services);
    const endObservation = unit.observe();
    const looks = new LegLooks(services, poster, { everyMs: options.resyncMs, never: options.never });
    looks.start();
    return {
      ...services,
      adoption,
      dropped,
      heartbeats,
      unit,
      never: options.never,
      poster,
      legMetrics: legMetrics(metrics),
      endObservation,
      looks,
    };
  },
  register(context, options) {
    const legs = legSettings(options);
    const toEveryLeg = <E>({ adoption, unit }: { adoption: Adoption; unit: Unit }, event: E) =>
      unit.isPaused() ? [] : adoption.legs.map(({ intf: key }) => ({ key, event }));
    const toEveryField = <E>({ adoption, unit }: { adoption: Adoption; unit: Unit }, event: E) => {
      const fields = unit.isPaused() ? [] : adoption.legs.filter(({ keep }) => keep);
      return fields.map(({ intf: key }) => ({ key, event }));
    };

    context.actor({ ...legActor, input: (key) => legs.find(({ intf }) => intf === key) });
    // Every leg is checked: an event names at most one interface, and a save of several may publish a single event.
    context.route(
      routerChannels.ifaceChangeApplied,
      legActor,
      ({ topic, payload }, started) =>
        toEveryLeg(started, { type: 'CHANGED', channel: topic, ...changeFields(payload) } as const),
      SEEN_BY_EACH_HOST,
    );
    // A save that touches no interface publishes nothing of one.
    for (const channel of [routerChannels.changeApplied, routerChannels.apcChangeApplied])
      context.route(
        channel,
        legActor,
        ({ topic, payload }, started) =>
          toEveryField(started, { type: 'CHANGED', channel: topic, ...changeFields(payload) } as const),
        SEEN_BY_EACH_HOST,
      );
    context.route(
      routerConnected,
      legActor,
      (_envelope, started) => toEveryLeg(started, { type: 'RESYNC', reason: 'connected' } as const),
      SEEN_BY_EACH_HOST,
    );
    context.route(
      routerApiRecovered,
      legActor,
      ({ payload: { reason } }, started) => toEveryLeg(started, { type: 'RESYNC', reason } as const),
      SEEN_BY_EACH_HOST,
    );
    context.route(resyncRequested, legActor, (_envelope, started) =>
      toEveryLeg(started, { type: 'RESYNC', reason: 'requested' } as const),
    );
    registerHeartbeat(context, { monitor: options.pushMonitor, idleMs: options.pushIdleMs });
    registerAdoption(context);
    registerDropped(context);
    registerAppSave(context);
    registerUnit(context);
    registerEffects(context);
    registerReapply(context, { everyMs: options.reapplyEveryMs, waitMs: options.waitMs });
    context.check({ name: 'router.legs', run: legsCheck });
    context.health('reconciler', ({ actors, adoption, looks, unit }) => {
      const { state, until, reason } = unit.view();
      const paused = state === 'paused' && { ok: false, reason: `${reason}, until ${until} at the latest` };
      const unconfirmed = adoption.reason();
      return {
        ...legsStatus(looks.seen(actors.list(legActor))),
        ...(unconfirmed !== undefined && { ok: false, reason: unconfirmed }),
        ...paused,
      };
    });
    context.command(adoptCommand);
    context.command(deployUla);
    context.command(drillUla);
    context.command(drillAppSave);
    context.onStop(({ endObservation, heartbeats, looks }) => {
      heartbeats.close();
      looks.stop();
      endObservation();
    });
  },
});

/** Makes the actors of the log agree with the configured list, and requests a check of every leg. */
function resumeLegs(legs: readonly LegSettings[], { actors }: Services): void {
  const story = { correlation: newCorrelation() };
  for (const { key, value } of actors.list(legActor)) {
    const isListed = legs.some(({ intf }) => intf === key);
    if (!isListed && value !== 'released') actors.send(legActor, key, { type: 'RELEASE' }, story);
  }
  for (const leg of legs) {
    const actor = actors.get(legActor, leg.intf);
    // A leg that is new to the log and only observed must learn that before its first reading.
    const hasChanged = actor ? actor.value === 'released' || differs(actor.context, leg) : leg.observes;
    const event = hasChanged
      ? ({ type: 'CONFIGURE', leg } as const)
      : ({ type: 'RESYNC', reason: 'start' } as const);
    actors.send(legActor, leg.intf, event, story);
  }
}

/** Whether an actor of the log has other settings than the configured ones. */
function differs(context: LegContext, leg: LegSettings): boolean {
  const present: Readonly<Record<string, unknown>> = { ...context };
  return Object.entries(leg).some(
    ([name, setting]) => !jsonEqual(name === 'observes' ? present[name] === true : present[name], setting),
  );
}

/** The fields of a channel's message; a real daemon may leave all of them out. */
function changeFields({ ncid, transID, intf, at }: RouterChange) {
  return {
    ...(ncid !== undefined && { ncid }),
    ...(transID !== undefined && { transID }),
    ...(intf !== undefined && { intf }),
    ...(at !== undefined && { at }),
  };
}
