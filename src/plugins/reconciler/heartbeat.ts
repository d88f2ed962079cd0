import { routerChannels } from '../../core/contracts/router.ts';
import {
  runTrouble,
  type TokenAccess,
  type UptimeMonitor,
  UptimeMonitorToken,
} from '../../core/contracts/uptime.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type HeartbeatSettings, heartbeatDefaults } from '../../machines/reconciler/heartbeat.ts';
import { heartbeatActor, legActor } from './actors.ts';
import { legsStatus } from './leg-status.ts';

/**
 * The reconciler's own beats (R27). Where a plugin pushes to an uptime monitor, a beat is sent after each event, and every
 * 240 s without an event.
 */
export class Heartbeats {
  readonly #services: Services;
  readonly #settings: HeartbeatSettings;

  /** @param options the push monitor, and the longest time without a beat, milliseconds */
  constructor(services: Services, options: Pick<HeartbeatSettings, 'monitor' | 'idleMs'>) {
    this.#services = services;
    this.#settings = { ...heartbeatDefaults, ...options };
  }

  /** Undefined where no plugin pushes to a monitor; then no beat is sent. */
  get receiver(): UptimeMonitor | undefined {
    return this.#services.find(UptimeMonitorToken);
  }

  start(): void {
    const { monitor } = this.#settings;
    const event = { type: 'START', settings: this.#settings } as const;
    if (this.receiver) this.#services.actors.send(heartbeatActor, monitor, event);
  }

  stop(): void {
    const { monitor } = this.#settings;
    if (this.receiver) this.#services.actors.send(heartbeatActor, monitor, { type: 'STOP' });
  }

  /** Whether beats arrive, for health pages; undefined before the first one, and where none are sent. */
  health() {
    const { monitor } = this.#settings;
    const snapshot = this.#services.actors.get(heartbeatActor, monitor);
    if (!snapshot || !this.receiver) return undefined;
    const { fault, deliveredAt } = snapshot.context;
    return {
      ...(fault !== undefined && { ok: false, reason: `no beat arrives at ${monitor}: ${fault}` }),
      heartbeat:
        deliveredAt === undefined
          ? 'none has arrived yet'
          : `arrived at ${new Date(deliveredAt).toISOString()}`,
    };
  }
}

interface Started extends Services {
  readonly heartbeats: Heartbeats;
  readonly unit: { isPaused(): boolean };
}

/** Registers the actor of the beats, its route and its effect. */
export function registerHeartbeat(
  context: PluginContext<Started>,
  options: Pick<HeartbeatSettings, 'monitor' | 'idleMs'>,
): void {
  const { monitor } = options;
  context.actor({ ...heartbeatActor, input: () => ({ ...heartbeatDefaults, ...options }) });
  context.route(routerChannels.ifaceChangeApplied, heartbeatActor, (_envelope, { heartbeats, unit }) =>
    heartbeats.receiver && !unit.isPaused() ? [{ key: monitor, event: { type: 'HEARD' } }] : [],
  );
  context.effect<{ monitor: string; heard: number }>(
    'reconciler.push_heartbeat',
    async ({ monitor, heard }, { at, signal, correlation, cause }, { actors, bus, clock, heartbeats }) => {
      const { whole, of } = legsStatus(actors.list(legActor));
      const events = heard === 0 ? 'no event' : heard === 1 ? '1 event' : `${heard} events`;
      const msg = `${whole} of ${of} legs whole, ${events} since the last beat`;
      const event = (await heartbeats.receiver?.pushEvent(monitor, { status: 'up', msg }, signal)) ?? {
        type: 'PUSH_FAILED' as const,
        at: clock.now(),
        reason: 'no plugin pushes to an uptime monitor',
        exitStatus: 3 as const,
      };
      if (event.type !== 'PUSHED') {
        const text = event.type === 'PUSH_FAILED' ? event.reason : (event.msg ?? event.body);
        bus.publish(runTrouble, { monitor, at, outcome: 'undelivered', text }, { correlation, cause });
      }
      return event;
    },
    { onRecovery: 'fail', adapter: UptimeMonitorToken.name },
  );
  context.health('reconcilerPush', ({ heartbeats }) => heartbeats.health());
}

/** The result of the extra beat that `holdfast deploy ula --check` sends. */
export interface TestBeat {
  readonly place: string;
  readonly monitor: string;
  /** Absent where nothing sends beats, or what does cannot tell. */
  readonly access?: TokenAccess;
  readonly push:
    | { readonly kind: 'delivered'; readonly status: number }
    /** The monitor itself answered, in its own words. */
    | { readonly kind: 'refused'; readonly reason: string }
    /** Something else answered, or nothing. */
    | { readonly kind: 'failed'; readonly status?: number; readonly reason: string }
    | { readonly kind: 'none'; readonly reason: string };
}

/** @param downReason why the reconciler is not up; then no beat is sent, because it would say `up` */
export async function sendTestBeat(
  receiver: UptimeMonitor | undefined,
  monitor: string,
  downReason: string | undefined,
): Promise<TestBeat> {
  const place = receiver?.place ?? 'nowhere';
  const access = await receiver?.access?.(monitor);
  const result = (push: TestBeat['push']): TestBeat => ({ place, monitor, ...(access && { access }), push });
  if (!receiver) return result({ kind: 'none', reason: 'no plugin sends beats' });
  if (downReason !== undefined) return result({ kind: 'none', reason: downReason });
  try {
    const answer = await receiver.push(monitor, { status: 'up', msg: 'checked by holdfast deploy ula' });
    if (answer.kind === 'delivered') return result(answer);
    if (answer.kind === 'failed') return result({ kind: 'failed', reason: answer.reason });
    const { status, msg, body } = answer;
    const reason = `HTTP ${status}: ${msg ?? body}`;
    return result(msg === undefined ? { kind: 'failed', status, reason } : { kind: 'refused', reason });
  } catch (error) {
    if (!isCoded(error, 'HF_UPTIME_TOKEN')) throw error;
    return result({ kind: 'none', reason: error.what });
  }
}
