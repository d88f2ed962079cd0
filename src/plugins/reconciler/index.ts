/**
 * The reconciler: holds listed legs of the router to a static IPv6 address, which every save of the phone app drops
 * (R24–R26). The machine `machines/reconciler.ts` decides, one actor a leg; `read-active.ts`
 * and `post-legs.ts` gather what the legs ask for into one read and one post.
 *
 * Imports core, bus and its machine; no other plugin. Works with whatever provides the router's API.
 */

import {
  RouterApiToken,
  type RouterChange,
  routerChannels,
  routerConnected,
} from '../../core/contracts/router.ts';
import { TelemetryToken } from '../../core/contracts/telemetry.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import { actorRef, newCorrelation } from '../../core/kernel/ids.ts';
import type { LegSettings } from '../../machines/reconciler/leg.ts';
import { reconciler as machine } from '../../machines/reconciler/leg.ts';
import { registerEffects } from './effects.ts';
import { registerHeartbeat } from './heartbeat.ts';
import { describeLegRecord, legsCheck, legsStatus } from './leg-status.ts';
import { legSettings, reconcilerOptions } from './options.ts';
import { deployUla, drillUla } from './rollout.ts';
import { registerResync, registerUnit, resyncAsked } from './unit.ts';

/** The type of a leg's actor; its key is the interface's name. */
const LEG_ACTOR = 'reconciler.leg';

export const reconciler = definePlugin({
  name: 'reconciler',
  about: {
    area: 'Router',
    what: 'holds legs to their static address, and beats while it does',
    docs: 'guides/reconcile-a-real-router.md',
  },
  options: reconcilerOptions,
  requires: [RouterApiToken],
  wants: [UptimeMonitorToken, TelemetryToken],
  register(context, options) {
    const legs = legSettings(options);
    const status = () => legsStatus(context.services.actors.list(LEG_ACTOR));
    const beats = registerHeartbeat(
      context,
      { monitor: options.pushMonitor, idleMs: options.pushIdleMs },
      status,
      () => unit.isPaused(),
    );
    const unit = registerUnit(context, {
      monitor: options.pushMonitor,
      legs: () => {
        const { whole, of } = status();
        return { whole: Number(whole), of: Number(of) };
      },
      beats,
    });
    const toEveryLeg = (event: { type: string; [field: string]: unknown }) =>
      unit.isPaused() ? [] : legs.map(({ intf }) => ({ key: intf, event }));

    context.actor(
      defineActor({
        type: LEG_ACTOR,
        machine,
        version: 1,
        input: (key) => ({ ...legs.find(({ intf }) => intf === key) }),
        describe: describeLegRecord,
      }),
    );
    // An event names one interface or none, and may be the only one of a save that changed several: every leg looks.
    context.route(
      defineRoute(routerChannels.ifaceChangeApplied, LEG_ACTOR, ({ topic, payload }) =>
        toEveryLeg({ type: 'CHANGED', channel: topic, ...said(payload) }),
      ),
    );
    context.route(
      defineRoute(routerConnected, LEG_ACTOR, () => toEveryLeg({ type: 'RESYNC', reason: 'connected' })),
    );
    context.route(
      defineRoute(resyncAsked, LEG_ACTOR, () => toEveryLeg({ type: 'RESYNC', reason: 'asked for' })),
    );
    registerResync(
      context,
      legs.map(({ intf }) => intf),
    );
    registerEffects(context, options.gatherMs, Math.random);
    context.check({ name: 'router.legs', run: legsCheck });
    context.health('reconciler', () => {
      const { state, until, reason } = unit.view();
      const stopped = state === 'paused' && { ok: false, reason: `${reason}, until ${until} at the latest` };
      return { ...status(), ...stopped };
    });
    context.command(deployUla);
    context.command(drillUla);
    context.onStart(() => takeUp(legs, context.services));
  },
});

/** Brings the actors that the log knows to today's list, and has every leg checked. */
function takeUp(legs: readonly LegSettings[], { actors }: Services): void {
  const story = { correlation: newCorrelation() };
  for (const { ref, value } of actors.list(LEG_ACTOR)) {
    const isListed = legs.some(({ intf }) => actorRef(LEG_ACTOR, intf) === ref);
    if (!isListed && value !== 'released') actors.send(ref, { type: 'RELEASE' }, story);
  }
  for (const leg of legs) {
    const ref = actorRef(LEG_ACTOR, leg.intf);
    const known = actors.snapshot(ref);
    const event =
      known && isOther(known, leg) ? { type: 'CONFIGURE', leg } : { type: 'RESYNC', reason: 'start' };
    actors.send(ref, event, story);
  }
}

/** Whether an actor that the log knows is held to something else than is listed today. */
function isOther({ value, context }: Readonly<ActorState>, leg: LegSettings): boolean {
  const held = context as unknown as Record<string, unknown>;
  return value === 'released' || Object.entries(leg).some(([name, setting]) => held[name] !== setting);
}

/** What a channel's message says; a real daemon may say nothing. */
function said(change: RouterChange): Record<string, unknown> {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}
