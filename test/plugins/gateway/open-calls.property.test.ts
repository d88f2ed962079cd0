import test from 'ava';
import fc from 'fast-check';
import { asEpochMs } from '../../../src/core/kernel/ids.ts';
import type { Json } from '../../../src/core/kernel/json.ts';
import type { CallRequest } from '../../../src/machines/gateway/call-shapes.ts';
import { judge } from '../../../src/machines/gateway/key-rules.ts';
import type { KeyContext } from '../../../src/machines/gateway/key-shapes.ts';
import { type Announced, Presence } from '../../../src/plugins/cluster/presence/presence.ts';
import { HostStanding } from '../../../src/plugins/gateway/calls/host-standing.ts';
import { KeyUsage } from '../../../src/plugins/gateway/calls/key-usage.ts';
import { runs } from '../../support/runs.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** As for `Beats` and `CatchingUp`. */
const BEAT_MS = 500;
const LISTENS_MS = 1_500;
/** A link is up for so long, at least. */
const UP_MS = 1_100;
const LARGEST_ANNOUNCEMENTS = 32 * 1024;
/** What another host had open so long ago, a host that is connected has heard. */
const HEARD_MS = 4_000;

interface Options {
  readonly hosts: number;
  readonly limit: number;
  /** How long a message takes from or to a host, milliseconds. */
  readonly delayMs: number;
}

/** A gateway whose host beats, is cut off, and comes back. */
class Gateway {
  readonly name: string;
  readonly presence: Presence<{ host: string; heardMs: number; announced: Announced }>;
  readonly #world: World;
  readonly #clock: VirtualClock;
  readonly #usage = new KeyUsage({ calls: 9_999, streams: 9_999, heldBytes: 1, longestBody: 1 });
  readonly #figures = new Map<string, () => Json>();
  readonly #standing: HostStanding;
  readonly #ends = new Map<string, (() => void)[]>();
  /** What was open of each key, since when. */
  readonly #history = new Map<string, { readonly at: number; readonly open: number }[]>();
  readonly #cuts: { readonly from: number; to: number }[] = [];
  #behindUntil = 0;
  /** When the newest beat was sent that a quorum has. */
  provenAt = 0;
  largest = 0;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#clock = world.clock;
    this.name = name;
    this.presence = new Presence(world.clock, name);
    const { presence } = this;
    const cluster = {
      host: name,
      standing: () => {
        const standing = presence.standing();
        const isBehind = !standing.isIsolated && this.#clock.monotonic() < this.#behindUntil;
        return isBehind ? { ...standing, isIsolated: true, isBehind } : standing;
      },
      announce: (of: string, figures: () => Json) => void this.#figures.set(of, figures),
      announced: (of: string) => presence.announced(of),
    };
    const keys = { get: (id: string) => ({ id, state: 'active', context: world.context }) };
    this.#standing = new HostStanding(cluster, { graceMs: 300_000, usage: this.#usage, keys });
  }

  get isCut(): boolean {
    return this.#cuts.at(-1)?.to === Number.POSITIVE_INFINITY;
  }

  set isCut(isCut: boolean) {
    if (isCut === this.isCut) return;
    const last = this.#cuts.at(-1);
    if (isCut) {
      const upMs = this.#clock.monotonic() - (last?.to ?? 0);
      // Else it may hear nothing of the others between two cuts.
      if (upMs < UP_MS) this.#clock.jump(UP_MS - upMs);
      this.#cuts.push({ from: this.#clock.monotonic(), to: Number.POSITIVE_INFINITY });
    } else if (last) last.to = this.#clock.monotonic();
  }

  wasConnected(from: number, to: number): boolean {
    return this.#cuts.every((cut) => cut.to < from || cut.from > to);
  }

  beat(): void {
    this.#clock.after(BEAT_MS, () => this.beat());
    const { delayMs } = this.#world.options;
    const sentAt = this.#clock.monotonic();
    this.presence.ticked();
    const announced: Record<string, Json> = {};
    for (const [of, figures] of this.#figures) {
      const said = figures();
      this.largest = Math.max(this.largest, JSON.stringify(said).length);
      if (this.largest <= LARGEST_ANNOUNCEMENTS) announced[of] = said;
    }
    if (this.isCut) return;
    this.#clock.after(delayMs, () => {
      for (const other of this.#world.gateways)
        if (other !== this) this.#clock.after(delayMs, () => other.hear(this.name, announced));
      this.#clock.after(delayMs, () => this.#stored(sentAt, announced));
    });
  }

  hear(host: string, announced: Announced): void {
    if (!this.isCut) this.presence.hear({ host, heardMs: this.#clock.monotonic(), announced });
  }

  #stored(sentAt: number, announced: Announced): void {
    if (this.isCut) return;
    this.provenAt = Math.max(this.provenAt, sentAt);
    // Meanwhile another stream proves that it is connected.
    if (!this.#world.isElecting) this.presence.stored(sentAt, announced);
    if (this.presence.proven(sentAt) !== undefined) this.#behindUntil = this.#clock.monotonic() + LISTENS_MS;
  }

  /** @returns whether the call is admitted; it stays open then */
  call(key: string, method = 'tools/list'): boolean {
    const ends: (() => void)[] = [];
    const onClose = (end: () => void) => {
      ends.push(end);
      return () => {};
    };
    const call: CallRequest = {
      ...{ type: 'CALL', at: asEpochMs(0), presented: 'k_0', routes: ['memory'], table: 1, method },
      ...this.#usage.enter(key, method, { onClose }),
      cluster: this.#standing.facts(key, method),
    };
    const isAdmitted = judge(this.#world.context, call).rule === 'admitted';
    if (!isAdmitted) for (const end of ends) end();
    else this.#ends.set(key, [...(this.#ends.get(key) ?? []), ...ends]);
    if (isAdmitted) this.#note(key);
    return isAdmitted;
  }

  end(key: string, count: number): void {
    for (const end of this.#ends.get(key)?.splice(0, count) ?? []) end();
    this.#note(key);
  }

  open(key: string): number {
    return this.#ends.get(key)?.length ?? 0;
  }

  /** What was open between two times. */
  between(key: string, from: number, to: number): number[] {
    const history = this.#history.get(key) ?? [];
    const before = history.findLast(({ at }) => at <= from)?.open ?? 0;
    return [before, ...history.flatMap(({ at, open }) => (at > from && at <= to ? [open] : []))];
  }

  #note(key: string): void {
    const history = this.#history.get(key) ?? [];
    history.push({ at: this.#clock.monotonic(), open: this.open(key) });
    this.#history.set(key, history);
  }
}

class World {
  /** The stream of the beats has no leader: others hear them, and nobody acknowledges them. */
  isElecting = false;
  readonly clock = new VirtualClock();
  readonly options: Options;
  readonly context: KeyContext;
  readonly gateways: readonly Gateway[];

  constructor(options: Options) {
    this.options = options;
    this.context = {
      ...{ revision: 1, window: { at: 0, calls: 0 }, spend: 0, calls: 0, refused: 0, presents: { k_0: {} } },
      terms: { alias: 'a', servers: ['memory'], maxParallel: options.limit, maxStreams: options.limit },
    };
    this.gateways = Array.from({ length: options.hosts }, (_, index) => new Gateway(this, `h${index}`));
    for (const [index, gateway] of this.gateways.entries())
      this.clock.after((index * BEAT_MS) / options.hosts, () => gateway.beat());
    this.clock.jump(5_000);
  }

  gateway(index: number): Gateway {
    const gateway = this.gateways[index % this.gateways.length];
    if (!gateway) throw new Error('there is none');
    return gateway;
  }

  total(key: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.open(key), 0);
  }

  /**
   * The most that a gateway may have open after a call: what it told, and its even part of what the others left of the limit, of which it knows for
   * sure. While it is cut off, that is what was so before.
   */
  most(gateway: Gateway, key: string): number {
    const { limit } = this.options;
    const { provenAt } = gateway;
    const now = this.clock.monotonic();
    const { isIsolated } = gateway.presence.standing();
    const from = provenAt - HEARD_MS;
    // The others may be heard for a beat more before nothing goes through.
    const to = gateway.isCut ? provenAt + 2 * BEAT_MS : now;
    const told = gateway.between(key, from, isIsolated ? provenAt : now);
    const own = Math.max(...(isIsolated ? told : told.slice(0, -1)));
    const others = this.gateways.filter((one) => one !== gateway && one.wasConnected(from, to));
    const elsewhere = others.reduce((sum, one) => sum + Math.min(...one.between(key, from, to)), 0);
    return own + Math.ceil(Math.max(0, limit - own - elsewhere) / (1 + others.length));
  }
}

interface Step {
  /** After so long. */
  readonly ms: number;
  readonly what: 'calls' | 'end' | 'cut' | 'heal' | 'elect';
  readonly host: number;
  /** Of calls. */
  readonly number: number;
}

const steps = fc.record({
  ms: fc.constantFrom(0, 30, 100, 200, 300, 600, 2_500, 14_000),
  what: fc.constantFrom<Step['what'][]>('calls', 'calls', 'calls', 'end', 'cut', 'heal', 'elect'),
  host: fc.nat(3),
  number: fc.constantFrom(1, 5, 60),
});
const plans: fc.Arbitrary<Step[]> = fc.array(steps, { maxLength: 60, size: 'max' });
const step = (ms: number, what: Step['what'], host = 0, number = 1): Step => ({ ms, what, host, number });
const two = { hosts: 2, limit: 1, delayMs: 1 };
/** Plans that broke the rule once. */
const EXAMPLES: [Options, Step[]][] = [
  // It is back, and has not heard the other one.
  [two, [step(0, 'cut'), step(0, 'calls', 1), step(14_300, 'heal'), step(300, 'calls')]],
  // The other one has heard that it ended its call, which nobody acknowledged.
  [
    two,
    [
      ...[step(0, 'calls'), step(600, 'elect'), step(0, 'end')],
      ...[step(600, 'calls', 1), step(14_000, 'calls')],
    ],
  ],
];
const networks = fc.record({
  hosts: fc.integer({ min: 2, max: 4 }),
  limit: fc.integer({ min: 1, max: 50 }),
  delayMs: fc.constantFrom(1, 40, 200),
});

test('[G16,C13] whoever is cut off or comes back, a host opens no more than its part of what the others left, as far as it can know', (t) => {
  fc.assert(
    fc.property(networks, plans, (options, plan) => {
      const world = new World(options);
      for (const { ms, what, host, number } of plan) {
        const gateway = world.gateway(host);
        world.clock.jump(ms);
        if (what === 'cut') gateway.isCut = true;
        if (what === 'end') gateway.end('k', number);
        if (what === 'heal') gateway.isCut = false;
        if (what === 'elect') world.isElecting = !world.isElecting;
        for (let one = 0; what === 'calls' && one < number && gateway.call('k'); one += 1) {
          const [open, most] = [gateway.open('k'), world.most(gateway, 'k')];
          if (open > most) throw new Error(`${gateway.name} has ${open} open, ${most} are the most`);
        }
      }
    }),
    { numRuns: runs(300), seed: 4_000, examples: EXAMPLES },
  );
  t.pass();
});

test('[G16,C13] of more keys than a beat has room for, each has its limit all the same', (t) => {
  const limit = 6;
  const world = new World({ hosts: 3, limit, delayMs: 2 });
  const keys = Array.from({ length: 1_100 }, (_, index) => `k_${String(index).padStart(32, '0')}`);
  const streams = keys.splice(0, 100);
  for (let beats = 0; beats < 2 * limit; beats += 1) {
    for (const key of streams) while (world.gateway(0).call(key, 'stream'));
    world.clock.jump(BEAT_MS);
  }
  const fill = () => {
    for (const gateway of world.gateways.slice(1))
      for (const key of streams) while (gateway.call(key, 'stream'));
    for (const [index, gateway] of world.gateways.entries()) {
      const from = index * 333; // each has announced others before
      for (const key of [...keys.slice(from), ...keys.slice(0, from)]) while (gateway.call(key));
    }
  };
  const most = (of = keys) => Math.max(...of.map((key) => world.total(key)));
  for (let beats = 0; beats < 8; beats += 1) {
    fill();
    world.clock.jump(BEAT_MS);
  }
  t.true(most() <= limit + 3 * (limit / 3), `${most()} are open of a key`);
  t.is(most(streams), limit, 'the others still know what they heard first');
  // One host ends its calls: the others take over what they may.
  for (const key of keys) world.gateway(0).end(key, limit);
  for (let beats = 0; beats < 8; beats += 1) {
    fill();
    world.clock.jump(BEAT_MS);
  }
  t.true(most() <= limit + 3 * (limit / 3), `${most()} are open of a key`);
  for (const { largest } of world.gateways)
    t.true(largest <= LARGEST_ANNOUNCEMENTS, `${largest} bytes are announced`);
});
