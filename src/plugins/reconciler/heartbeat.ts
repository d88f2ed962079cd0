import { routerChannels } from '../../core/contracts/router.ts';
import { runTrouble, type UptimeMonitor, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import {
  type HeartbeatContext,
  type HeartbeatSettings,
  heartbeatDefaults,
  heartbeat as machine,
} from '../../machines/reconciler/heartbeat.ts';

const HEARTBEAT_ACTOR = 'reconciler.heartbeat';

/**
 * Registers the reconciler's own beats (R27): where some plugin speaks to an uptime monitor it hears that the reconciler
 * lives, after each event and every 240 s without one. Who is not watched sends nothing.
 *
 * @param status how the legs are, as on health pages
 * @param isPaused whether the reconciler is stopped, and so is silent
 * @returns begins and ends the beats
 */
export function registerHeartbeat(
  context: PluginContext,
  { monitor, idleMs }: Pick<HeartbeatSettings, 'monitor' | 'idleMs'>,
  status: () => JsonObject,
  isPaused: () => boolean,
): { readonly start: () => void; readonly stop: () => void } {
  const settings: HeartbeatSettings = { ...heartbeatDefaults, monitor, idleMs };
  const ref = actorRef(HEARTBEAT_ACTOR, monitor);
  const receiver = () => context.services.find(UptimeMonitorToken);

  context.actor(
    defineActor({
      type: HEARTBEAT_ACTOR,
      machine,
      version: 1,
      input: () => ({ ...settings }),
      describe: describeBeat,
    }),
  );
  context.route(
    defineRoute(routerChannels.ifaceChangeApplied, HEARTBEAT_ACTOR, () =>
      receiver() === undefined || isPaused() ? [] : [{ key: monitor, event: { type: 'HEARD' } }],
    ),
  );
  context.effect<{ monitor: string; heard: number }>(
    'reconciler.push_heartbeat',
    async ({ monitor: name, heard }, { at, signal, correlation, cause }) => {
      const { bus, clock } = context.services;
      const { whole, of } = status();
      const msg = `${whole} of ${of} legs whole, ${heard === 0 ? 'no event' : heard === 1 ? '1 event' : `${heard} events`} since the last beat`;
      const event = (await receiver()?.pushEvent(name, { status: 'up', msg }, signal)) ?? {
        type: 'PUSH_FAILED' as const,
        at: clock.now(),
        reason: 'no plugin speaks to an uptime monitor',
        exitStatus: 3 as const,
      };
      if (event.type !== 'PUSHED') {
        const text = event.type === 'PUSH_FAILED' ? event.reason : (event.msg ?? event.body);
        bus.publish(runTrouble, { monitor: name, at, outcome: 'undelivered', text }, { correlation, cause });
      }
      return event;
    },
    { onRecovery: 'fail', adapter: UptimeMonitorToken.name },
  );
  context.health('reconcilerPush', () => {
    const state = context.services.actors.snapshot(ref);
    if (!state || receiver() === undefined) return undefined;
    const { fault, deliveredAt } = state.context as unknown as HeartbeatContext;
    return {
      ...(fault !== undefined && { ok: false, reason: `no beat arrives at ${monitor}: ${fault}` }),
      heartbeat:
        deliveredAt === undefined
          ? 'none has arrived yet'
          : `arrived at ${new Date(deliveredAt).toISOString()}`,
    };
  });
  const start = () => {
    if (receiver() !== undefined) context.services.actors.send(ref, { type: 'START', settings });
  };
  const stop = () => {
    if (receiver() !== undefined) context.services.actors.send(ref, { type: 'STOP' });
  };
  context.onStart(() => {
    if (!isPaused()) start();
  });
  return { start, stop };
}

/** A beat that arrives is routine. */
function describeBeat({ event }: LogRecord): string | undefined {
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `no beat arrives: HTTP ${String(event.status)}: ${String(event.msg ?? event.body)}`;
    case 'PUSH_FAILED':
      return `no beat arrives: ${String(event.reason)}`;
    case 'init':
    case 'START':
    case 'HEARD':
    case 'PUSHED':
    case 'STOP':
    case 'effect.done':
      return '';
  }
  return delayOf(event.type) === undefined ? undefined : '';
}

/** One beat out of turn, for the check of a deployment. */
export interface Trial {
  readonly place: string;
  readonly monitor: string;
  readonly token: { readonly ok: true } | { readonly ok: false; readonly reason: string };
  readonly push:
    | { readonly kind: 'delivered'; readonly status: number }
    | { readonly kind: 'failed'; readonly status?: number; readonly reason: string }
    | { readonly kind: 'none'; readonly reason: string };
}

/** @param down why no beat may be sent: one that says up would be a lie */
export async function tryBeat(
  receiver: UptimeMonitor | undefined,
  monitor: string,
  down: string | undefined,
): Promise<Trial> {
  const place = receiver?.place ?? 'nowhere';
  const none = (reason: string) =>
    ({ place, monitor, token: { ok: true }, push: { kind: 'none', reason } }) as const;
  if (!receiver) return none('no plugin sends beats');
  if (down !== undefined) return none(down);
  try {
    const answer = await receiver.push(monitor, { status: 'up', msg: 'checked by holdfast deploy ula' });
    if (answer.kind === 'delivered') return { place, monitor, token: { ok: true }, push: answer };
    const push =
      answer.kind === 'refused'
        ? {
            kind: 'failed' as const,
            status: answer.status,
            reason: `HTTP ${answer.status}: ${answer.msg ?? answer.body}`,
          }
        : { kind: 'failed' as const, reason: answer.reason };
    return { place, monitor, token: { ok: true }, push };
  } catch (error) {
    if (!isCoded(error, 'HF_UPTIME_TOKEN')) throw error;
    const reason = error.what;
    return { place, monitor, token: { ok: false, reason }, push: { kind: 'none', reason } };
  }
}
