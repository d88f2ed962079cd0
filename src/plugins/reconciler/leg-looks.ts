import { type RouterApi, RouterApiToken } from '../../core/contracts/router.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { leg } from '../../machines/reconciler/leg.ts';
import { type LegContext, REPORT_MS } from '../../machines/reconciler/leg-shapes.ts';
import { legActor } from './actors.ts';
import { readHeld } from './kept-fields.ts';
import { isOnLink, linkDoubt } from './link.ts';
import type { LegPoster } from './router-access.ts';

type LegSnapshot = ActorSnapshot<typeof leg>;

interface LookOptions {
  readonly everyMs: number;
  /** Interfaces that are never touched. */
  readonly never: readonly string[];
}

/**
 * Looks at the whole legs again while nothing happens. A look that finds what the log has is counted, and the count
 * recorded once an hour; any other has the leg's machine read the config itself, which decides.
 */
export class LegLooks {
  readonly #services: Services;
  readonly #reader: LegPoster['reader'];
  readonly #api: RouterApi;
  readonly #options: LookOptions;
  readonly #stop = new AbortController();
  /** Looks since the last that was recorded, and the time of the newest, by interface. */
  readonly #unrecorded = new Map<string, { readonly looks: number; readonly at: number }>();
  #cancel = () => {};

  constructor(services: Services, { reader }: LegPoster, options: LookOptions) {
    this.#services = services;
    this.#reader = reader;
    this.#api = services.get(RouterApiToken);
    this.#options = options;
  }

  start(): void {
    this.#services.actors.onClockJump(({ byMs }) => {
      for (const [intf, seen] of this.#unrecorded)
        this.#unrecorded.set(intf, { ...seen, at: seen.at + byMs });
    });
    this.#wait();
  }

  #wait(): void {
    this.#cancel = this.#services.clock.after(this.#options.everyMs, () => void this.#round());
  }

  stop(): void {
    this.#stop.abort();
    this.#cancel();
  }

  /** The legs, each with the time of the newest look at it. */
  seen(legs: readonly LegSnapshot[]): readonly LegSnapshot[] {
    return legs.map((one) => ({ ...one, at: Math.max(one.at, this.#unrecorded.get(one.key)?.at ?? 0) }));
  }

  /** Never rejects. */
  async #round(): Promise<void> {
    const { actors, logger } = this.#services;
    try {
      const legs = actors.list(legActor).filter(({ value }) => value === 'whole');
      if (legs.length > 0) await this.#look(legs);
    } catch (error) {
      if (!this.#stop.signal.aborted) logger.warn({ err: error }, 'leg.look_failed');
    }
    if (!this.#stop.signal.aborted) this.#wait();
  }

  async #look(legs: readonly LegSnapshot[]): Promise<void> {
    const { signal } = this.#stop;
    const config = await this.#reader.read(signal).catch((error: unknown) => {
      if (signal.aborted || !isCoded(error)) throw error;
      return error.what;
    });
    await Promise.all(
      legs.map(async ({ key, context }) => {
        const differs =
          typeof config === 'string'
            ? config
            : await this.#difference(readHeld(config, context, this.#options.never), context);
        this.#report(key, differs);
      }),
    );
  }

  /** What of a leg is not as its machine last saw it; undefined when all is. */
  async #difference(
    { ncid, addresses, refusedName }: ReturnType<typeof readHeld>,
    { intf, address, keep, lastNcid, link }: LegContext,
  ): Promise<string | undefined> {
    if (refusedName !== undefined || !addresses?.includes(address)) return 'the config lacks it';
    if (ncid !== lastNcid) return 'the config has changed';
    if (keep) return undefined;
    try {
      const view = await this.#api.interfaceState(intf, this.#stop.signal);
      const doubt = linkDoubt(view, address);
      if (doubt !== undefined)
        return link?.state === 'unknown' && link.reason === doubt ? undefined : 'the link is unknown';
      return isOnLink(view, address) === (link?.state === 'present') ? undefined : 'the link has changed';
    } catch (error) {
      if (this.#stop.signal.aborted || !isCoded(error)) throw error;
      return link?.state === 'unknown' ? undefined : 'the link cannot be looked at';
    }
  }

  #report(intf: string, differs: string | undefined): void {
    const { actors, clock } = this.#services;
    const now = clock.now();
    const leg = actors.get(legActor, intf);
    // Meanwhile an event may have had it read.
    if (this.#stop.signal.aborted || leg?.value !== 'whole') return;
    const looks = 1 + (this.#unrecorded.get(intf)?.looks ?? 0);
    if (differs === undefined && now - leg.at < REPORT_MS) {
      this.#unrecorded.set(intf, { looks, at: now });
      return;
    }
    this.#unrecorded.delete(intf);
    actors.send(legActor, intf, {
      type: 'LOOKED',
      at: now,
      looks,
      ...(differs !== undefined && { differs }),
    });
  }
}
