import type { Bus } from '../../../bus/bus.ts';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import { type RouterRecovered, routerApiRecovered } from '../../../core/contracts/router.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { HeldConnection } from './held-connection.ts';
import type { ApiObserver } from './remote-router.ts';

/** Timeout of a reading during an outage, milliseconds: a daemon that hangs must not be waited for long. */
const PROBE_TIMEOUT_MS = 5_000;
/**
 * A change that is read within this time of an event, milliseconds, needs no other announcement: whoever follows events
 * looks a second time after it. A later one may be of a save that nobody was told of.
 */
const ANNOUNCED_MS = 1_000;

interface ApiWatchOptions {
  /** Base of the router's API. */
  readonly url: string;
  /** Reads the active config; how that ends comes back through `answered` and `failed`. */
  readonly read: (timeoutMs?: number) => Promise<unknown>;
  /** Between two readings while the API answers. */
  readonly lookMs: number;
  /** Between two readings while it does not. */
  readonly probeMs: number;
  readonly alertAfterMs: number;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

/** A time in which the API gave no usable answer. */
interface Outage {
  /** Epoch milliseconds. */
  readonly since: number;
  /** Why the newest call got none. */
  reason: string;
  alerted?: true;
}

/**
 * Watches whether the router's API answers, and whether its config changes without an event. A daemon's restart publishes
 * nothing, and pub/sub loses what is published while the subscription is down, so the config is read regularly, and when
 * the connection that is held for this purpose ends. One reading serves everybody who compares something with the config: they read it themselves on `routerApiRecovered`.
 */
export class ApiWatch implements ApiObserver {
  readonly #options: ApiWatchOptions;
  #stopped = false;
  #cancelLook = () => {};
  #cancelAlert = () => {};
  #down: Outage | undefined;
  #digest: string | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #isBroken = false;
  readonly #held: HeldConnection;

  constructor(options: ApiWatchOptions) {
    this.#options = options;
    this.#held = new HeldConnection(options.url, options.clock, () => this.#connectionEnded());
  }

  start(): void {
    this.#lookLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelLook();
    this.#cancelAlert();
    this.#held.stop();
  }

  /** An event that has everybody look at the interfaces was received. */
  heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
  }

  /** A write of ours was accepted, so the next reading differs from the last. */
  written(): void {
    this.#digest = undefined;
  }

  broken(): void {
    this.#isBroken = true;
  }

  failed(reason: string): void {
    if (this.#stopped) return;
    if (this.#down) {
      this.#down.reason = reason;
      return;
    }
    const { alertAfterMs, clock, logger } = this.#options;
    this.#down = { since: clock.now(), reason };
    logger.warn({ reason }, 'router.api_lost');
    this.#cancelAlert = clock.after(alertAfterMs, () => this.#alertDown());
    this.#lookLater();
  }

  answered(digest?: string): void {
    if (this.#stopped) return;
    this.#held.hold();
    const { clock } = this.#options;
    const isKnown = digest !== undefined && this.#digest !== undefined;
    const hasChanged = isKnown && digest !== this.#digest && clock.monotonic() - this.#heardAt > ANNOUNCED_MS;
    this.#digest = digest ?? this.#digest;
    const isRestarted = this.#isBroken;
    this.#isBroken = false;
    if (this.#down) this.#answersAgain(this.#down);
    else if (isRestarted) this.#recovered({ reason: 'restarted' });
    else if (hasChanged) this.#recovered({ reason: 'missed a change' });
  }

  /** For health pages. */
  status(): JsonObject {
    if (!this.#down) return {};
    const { since, reason } = this.#down;
    return { unreachable: { since: new Date(since).toISOString(), reason } };
  }

  #answersAgain({ since, alerted }: Outage): void {
    const downMs = this.#options.clock.now() - since;
    this.#down = undefined;
    this.#cancelAlert();
    this.#lookLater();
    this.#recovered({ reason: 'answers again', downMs });
    if (alerted) {
      const text = `The router's API answers again after ${Math.round(downMs / 1_000)} s; every leg is checked now.`;
      this.#options.bus.publish(alertRaised, {
        name: 'router.api.answers_again',
        severity: 'info',
        text,
        labels: {},
      });
    }
  }

  #recovered(recovery: RouterRecovered): void {
    this.#options.logger.info({ ...recovery }, 'router.api_recovered');
    this.#options.bus.publish(routerApiRecovered, recovery);
  }

  #alertDown(): void {
    if (!this.#down) return;
    const { alertAfterMs, bus } = this.#options;
    this.#down.alerted = true;
    const seconds = Math.round(alertAfterMs / 1_000);
    bus.publish(alertRaised, {
      name: 'router.api.unreachable',
      severity: 'critical',
      text: `The router's API has given no usable answer for ${seconds} s (${this.#down.reason}): no leg can be checked until it does. Holdfast keeps asking.`,
      labels: {},
    });
  }

  /** A router that has stopped refuses the next connection; one that only tidied up answers. */
  #connectionEnded(): void {
    if (this.#down) return;
    this.#cancelLook();
    void this.#look();
  }

  #lookLater(): void {
    const { clock, lookMs, probeMs } = this.#options;
    this.#cancelLook();
    if (this.#stopped) return;
    this.#cancelLook = clock.after(this.#down ? probeMs : lookMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const wasDown = this.#down !== undefined;
    // The outcome has been reported by the call itself.
    await this.#options.read(wasDown ? PROBE_TIMEOUT_MS : undefined).catch(() => {});
    // The other transitions have made a new appointment already.
    if (wasDown === (this.#down !== undefined)) this.#lookLater();
  }
}
