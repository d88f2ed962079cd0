/**
 * Notices what others do to the address sets of the packet filter, so that they are filled again within a minute (R21).
 * nftables announces it to one long-lived `nft monitor`; `ipset` announces nothing, so its sets are listed regularly.
 */
import { concatMap, merge, Subject, type Subscription } from 'rxjs';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { jsonEqual } from '../../../core/kernel/json.ts';
import type { SetPrefixes } from '../../../machines/router/address-sets.ts';
import { hold, readSets } from '../host/set-tools.ts';
import { commandOf } from '../host/tool.ts';
import { type PacketFilter, SETS_KEY, setsActor, setsRead, withoutEmpty } from './address-sets.ts';
import { bursts, whenListening } from './kernel/netlink-monitor.ts';
import { SupervisedChild } from './kernel/supervised-child.ts';

/** A change has ended when nothing was announced for this long; so another program that fills the sets cannot keep this one busy. */
const QUIET_MS = 1_000;
/** A change is looked at after this time even if it has not ended. */
const LONGEST_MS = 5_000;
const SET = /\bc_net_|^delete table|^flush/;

export class SetWatch {
  readonly #filter: PacketFilter;
  readonly #services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger'>;
  readonly #lookMs: number;
  readonly #monitor: SupervisedChild | undefined;
  readonly #announced = new Subject<void>();
  readonly #due = new Subject<void>();
  readonly #looks: Subscription;
  /** What was found and published last, and when (epoch milliseconds). */
  #found: SetPrefixes | undefined;
  /** By the monotonic clock. */
  #foundAt = Number.NEGATIVE_INFINITY;
  #cancelLook = () => {};
  #cancelRegular = () => {};

  /** @param lookMs between two looks at sets that are not announced, and until the same finding is published again, milliseconds */
  constructor(
    filter: PacketFilter,
    services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger'>,
    lookMs: number,
  ) {
    const { clock, logger } = services;
    this.#filter = filter;
    this.#services = services;
    this.#lookMs = lookMs;
    this.#looks = merge(this.#announced.pipe(bursts(clock, QUIET_MS, LONGEST_MS)), this.#due)
      .pipe(concatMap(() => this.#look()))
      .subscribe();
    if (filter.tool !== 'nft') return;
    const { namespace } = filter;
    const [program, ...args] = commandOf({ program: 'nft', args: ['monitor'], namespace });
    this.#monitor = new SupervisedChild({
      program,
      args,
      clock,
      onLine: (line) => {
        if (SET.test(line)) this.#announced.next();
      },
      onUp: (pid) => void this.#takeUp(pid),
      onEnd: (reason, failures) => logger.warn({ reason, failures }, 'router.set_watch_ended'),
    });
  }

  start(): void {
    if (this.#monitor) this.#monitor.start();
    else this.#lookRegularly();
  }

  async stop(): Promise<void> {
    this.#looks.unsubscribe();
    this.#cancelLook();
    this.#cancelRegular();
    await this.#monitor?.stop();
  }

  /** What changed before it listened was announced to nobody. */
  async #takeUp(pid: number): Promise<void> {
    if (await whenListening(pid, () => this.#monitor?.pid === pid)) this.#due.next();
  }

  #lookRegularly(): void {
    this.#cancelRegular = this.#services.clock.after(this.#lookMs, () => {
      this.#due.next();
      this.#lookRegularly();
    });
  }

  async #look(): Promise<void> {
    const { actors, bus, clock, logger } = this.#services;
    const { tool, namespace } = this.#filter;
    try {
      const found = withoutEmpty(await readSets(tool, { namespace }));
      const actor = actors.get(setsActor, SETS_KEY);
      if (!actor) return;
      // Its own work is announced, too.
      if (actor.value === 'populating') {
        this.#announced.next();
        return;
      }
      if (hold(found, withoutEmpty(actor.context.populated))) return;
      // Filling may be unable to change it, so the same finding is not published again at once.
      const waitMs = this.#foundAt + this.#lookMs - clock.monotonic();
      if (jsonEqual(found, this.#found) && waitMs > 0) {
        this.#cancelLook();
        this.#cancelLook = clock.after(waitMs, () => this.#due.next());
        return;
      }
      this.#found = found;
      this.#foundAt = clock.monotonic();
      bus.publish(setsRead, { sets: found });
    } catch (error) {
      logger.warn({ err: error }, 'router.sets_unread');
    }
  }
}
