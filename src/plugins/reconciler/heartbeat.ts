import { routerChannels } from '../../core/contracts/router.ts';
import {
  type PushEvent,
  runTrouble,
  type TokenAccess,
  type UptimeMonitor,
  UptimeMonitorToken,
} from '../../core/contracts/uptime.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { timestamp } from '../../core/host/terminal.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type HeartbeatSettings, heartbeatDefaults } from '../../machines/reconciler/heartbeat.ts';
import { heartbeatActor, legActor } from './actors.ts';
import { legsStatus } from './leg-status.ts';

/** The longest time without a recorded beat, milliseconds. */
const REPORT_MS = 3_600_000;
const PUSH_TIMEOUT_MS = 30_000;

/**
 * The reconciler's own beats (R27). Where a plugin pushes to an uptime monitor, a beat is sent after each event, and every
 * 240 s without an event.
 */
export class Heartbeats {
  readonly #services: Services;
  readonly #settings: HeartbeatSettings;
  readonly #stop = new AbortController();
  #cancel = () => {};
  /** Beats since the last recorded one, and when the newest arrived. */
  #unrecorded: { readonly looks: number; readonly at: number } | undefined;

  /** @param options the push monitor, and the longest time without a beat, milliseconds */
  constructor(services: Services, options: Pick<HeartbeatSettings, 'monitor' | 'idleMs'>) {
    this.#services = services;
    const reportMs = REPORT_MS + 2 * options.idleMs;
    this.#settings = { ...heartbeatDefaults, ...options, reportMs };
  }

  /** Undefined where no plugin pushes to a monitor; then no beat is sent. */
  get receiver(): UptimeMonitor | undefined {
    return this.#services.find(UptimeMonitorToken);
  }

  start(): void {
    const { monitor } = this.#settings;
    const event = { type: 'START', settings: this.#settings } as const;
    if (!this.receiver) return;
    this.#services.actors.send(heartbeatActor, monitor, event);
    this.#wait(this.#settings.idleMs);
  }

  stop(): void {
    const { monitor } = this.#settings;
    this.#cancel();
    if (this.receiver) this.#services.actors.send(heartbeatActor, monitor, { type: 'STOP' });
  }

  /** The runtime stops: no more beats. */
  close(): void {
    this.#stop.abort();
    this.#cancel();
  }

  /** A recorded beat was sent: the next one without events is due after the interval. @returns the message of a beat */
  sent(heard: number): string {
    this.#unrecorded = undefined;
    this.#wait(this.#settings.idleMs);
    return this.#text(heard);
  }

  #text(heard: number): string {
    const { whole, of } = legsStatus(this.#services.actors.list(legActor));
    const events = heard === 0 ? 'no event' : heard === 1 ? '1 event' : `${heard} events`;
    return `${whole} of ${of} legs whole, ${events} since the last beat`;
  }

  #wait(ms: number): void {
    this.#cancel();
    if (!this.#stop.signal.aborted) this.#cancel = this.#services.clock.after(ms, () => void this.#beat());
  }

  /** Sends the beat of a time without events. One that does not arrive is sent again and recorded. Never rejects. */
  async #beat(): Promise<void> {
    const { monitor, idleMs } = this.#settings;
    const { actors, bus, clock } = this.#services;
    const state = () => actors.get(heartbeatActor, monitor);
    this.#wait(idleMs);
    if (state()?.value !== 'quiet') return;
    const { looks = 0 } = this.#unrecorded ?? {};
    const isDue = clock.now() - (state()?.context.deliveredAt ?? 0) >= REPORT_MS;
    const beat = { status: 'up', msg: this.#text(0) } as const;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(PUSH_TIMEOUT_MS)]);
    const answer = isDue
      ? undefined
      : await this.receiver?.pushEvent(monitor, beat, signal).catch(() => undefined);
    if (this.#stop.signal.aborted || state()?.value !== 'quiet') return;
    if (answer?.type === 'PUSHED') this.#unrecorded = { looks: looks + 1, at: answer.at };
    else if (answer) {
      const correlation = newCorrelation();
      reportTrouble(bus, { monitor, at: clock.now() }, answer, { correlation });
      actors.send(heartbeatActor, monitor, answer, { correlation });
    } else actors.send(heartbeatActor, monitor, { type: 'DUE', looks });
  }

  /** Whether beats arrive, for health pages; undefined before the first one, and where none are sent. */
  health() {
    const { monitor } = this.#settings;
    const snapshot = this.#services.actors.get(heartbeatActor, monitor);
    if (!snapshot || !this.receiver) return undefined;
    const { fault } = snapshot.context;
    const deliveredAt = this.#unrecorded?.at ?? snapshot.context.deliveredAt;
    const reason = fault === undefined ? undefined : `no beat arrives at ${monitor}: ${fault}`;
    const newest =
      deliveredAt === undefined
        ? 'no heartbeat has arrived yet'
        : `the newest heartbeat arrived at ${timestamp(deliveredAt)}`;
    return {
      text: [newest, ...(reason === undefined ? [] : [reason])].join('; '),
      ...(reason !== undefined && { ok: false, reason }),
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

/** Tells the monitor's plugin why a beat did not arrive. */
function reportTrouble(
  bus: Services['bus'],
  about: { readonly monitor: string; readonly at: number },
  event: Exclude<PushEvent, { readonly type: 'PUSHED' }>,
  story: { readonly correlation: string; readonly cause?: number },
): void {
  const text = event.type === 'PUSH_FAILED' ? event.reason : (event.msg ?? event.body);
  bus.publish(runTrouble, { ...about, outcome: 'undelivered', text }, story);
}

/** Registers the actor of the beats, its route and its effect. */
export function registerHeartbeat(
  context: PluginContext<Started>,
  options: Pick<HeartbeatSettings, 'monitor' | 'idleMs'>,
): void {
  const { monitor } = options;
  context.actor({ ...heartbeatActor, input: () => ({ ...heartbeatDefaults, ...options }) });
  context.route(
    routerChannels.ifaceChangeApplied,
    heartbeatActor,
    (_envelope, { heartbeats, unit }) =>
      heartbeats.receiver && !unit.isPaused() ? [{ key: monitor, event: { type: 'HEARD' } }] : [],
    { ownHost: true },
  );
  context.effect<{ monitor: string; heard: number }>(
    'reconciler.push_heartbeat',
    async ({ monitor, heard }, { at, signal, correlation, cause }, { bus, clock, heartbeats }) => {
      const msg = heartbeats.sent(heard);
      const event = (await heartbeats.receiver?.pushEvent(monitor, { status: 'up', msg }, signal)) ?? {
        type: 'PUSH_FAILED' as const,
        at: clock.now(),
        reason: 'no plugin pushes to an uptime monitor',
        exitStatus: 3 as const,
      };
      if (event.type !== 'PUSHED') reportTrouble(bus, { monitor, at }, event, { correlation, cause });
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
