import test from 'ava';
import fc from 'fast-check';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { virtualKey } from '../../../src/machines/gateway/key.ts';
import type { KeyContext, KeyEvent, KeyTerms, WantParams } from '../../../src/machines/gateway/key-shapes.ts';
import { runs } from '../../support/runs.ts';

const MINUTE = 60_000;
const START = 1_800_000_000_000;

interface Message extends WantParams {
  readonly order: number;
  readonly sentAt: number;
}

interface Admission {
  /** True time. */
  readonly at: number;
  readonly host: number;
}

interface WorldOptions {
  readonly hosts: number;
  readonly terms: Partial<KeyTerms>;
  /** How far each host's clock is off, milliseconds. */
  readonly offsets: readonly number[];
  /** How long messages take from and to each host, milliseconds. */
  readonly delays: readonly number[];
}

/** One key on several hosts, whose messages one server orders. */
class World {
  readonly #stepper = new MachineStepper(virtualKey);
  readonly #steps: Step[] = [];
  readonly #logs: LogEvent[][] = [];
  readonly #options: WorldOptions;
  #now = START;
  #order = 1;
  /** What is under way, by when it arrives. */
  #underWay: { readonly at: number; readonly to?: number | undefined; readonly deliver: () => void }[] = [];
  readonly #closedUntil: number[] = [];
  readonly #cutOffSince: (number | undefined)[] = [];
  readonly #held: Message[][] = [];
  readonly admissions: Admission[] = [];
  /** What each host used of each window, at most. */
  readonly used = new Map<number, Map<number, number>>();
  messages = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    const terms = { alias: 'a', servers: ['memory'], ...options.terms };
    for (let host = 0; host < options.hosts; host += 1) {
      this.#steps.push(this.#stepper.initial());
      this.#logs.push([]);
      this.#held.push([]);
      this.#send(host, { type: 'KEY_CREATED', at: this.#clock(host), order: 1, presented: 'k_0', terms });
    }
  }

  /** Time goes on, and what is under way arrives. */
  pass(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      this.#underWay.sort((one, other) => one.at - other.at);
      const next = this.#underWay[0];
      if (!next || next.at > until) break;
      this.#underWay.shift();
      this.#now = Math.max(this.#now, next.at);
      next.deliver();
    }
    this.#now = until;
  }

  /** @returns whether it was admitted */
  call(host: number, cost?: number): boolean {
    const { hosts } = this.#options;
    const since = this.#cutOffSince[host];
    const isolatedMs = since === undefined || this.#now - since < 2_000 ? undefined : this.#now - since;
    const closedMs = (this.#closedUntil[host] ?? 0) - this.#now;
    this.#send(host, {
      type: 'CALL',
      at: this.#clock(host),
      presented: 'k_0',
      routes: ['memory'],
      table: 1,
      method: 'tools/call',
      tool: 'memory-find',
      ...(cost !== undefined && { cost }),
      cluster: {
        host: `h${host}`,
        hosts,
        ...(closedMs > 0 && { closedMs }),
        ...(isolatedMs !== undefined && { isolatedMs, graceMs: 10 * MINUTE }),
      },
    });
    const { effects } = this.#steps[host] ?? { effects: [] };
    const want = effects.find(({ type }) => type === 'gateway.want_slice')?.params as WantParams | undefined;
    if (want && since === undefined) this.#tell(host, want);
    const isAdmitted = effects.some(({ type }) => type === 'gateway.forward');
    if (isAdmitted) this.admissions.push({ at: this.#now, host });
    return isAdmitted;
  }

  /** What is on its way to a host is lost, and the host notices. */
  lose(host: number): void {
    this.#underWay = this.#underWay.filter(({ to }) => to !== host);
    this.#held[host]?.splice(0);
    this.#closedUntil[host] = this.#now + MINUTE;
  }

  cut(host: number): void {
    this.#cutOffSince[host] ??= this.#now;
  }

  heal(host: number): void {
    this.#cutOffSince[host] = undefined;
    for (const message of this.#held[host]?.splice(0) ?? []) this.#hear(host, message);
  }

  context(host: number): KeyContext {
    return this.#steps[host]?.context as KeyContext;
  }

  /** Whether each host's log leads to its state again, and all hosts share the same. */
  replays(): boolean {
    return this.#logs.every((log, host) => {
      let step = this.#stepper.initial();
      for (const event of log) step = this.#stepper.next(step.snapshot, event);
      return JSON.stringify(step.context) === JSON.stringify(this.context(host));
    });
  }

  /** What all hosts share, but for when each heard of it. */
  sharedBy(host: number): string {
    const { shares = {} } = this.context(host).shared ?? {};
    return JSON.stringify(Object.entries(shares).map(([name, share]) => [name, { ...share, at: 0 }]));
  }

  #tell(host: number, want: WantParams): void {
    this.messages += 1;
    this.#later(host, () => {
      this.#order += 1;
      const message = { ...want, order: this.#order, sentAt: this.#now };
      for (let other = 0; other < this.#options.hosts; other += 1) {
        this.#later(other, () => this.#hear(other, message), other);
        // At least once, and not everywhere as often.
        if (this.#order % 3 === 0 && other % 2 === 1)
          this.#later(other, () => this.#hear(other, message), other);
      }
    });
  }

  #hear(host: number, message: Message): void {
    if (this.#cutOffSince[host] !== undefined) {
      this.#held[host]?.push(message);
      return;
    }
    const { order, sentAt, ...want } = message;
    this.#send(host, {
      type: 'SLICE_WANTED',
      at: this.#clock(host),
      order,
      sentAt,
      here: `h${host}`,
      ...want,
    });
  }

  #later(host: number, deliver: () => void, to?: number): void {
    this.#underWay.push({ at: this.#now + (this.#options.delays[host] ?? 0), to, deliver });
  }

  #clock(host: number): number {
    return this.#now + (this.#options.offsets[host] ?? 0);
  }

  #send(host: number, sent: KeyEvent): void {
    const step = this.#steps[host];
    if (!step) return;
    const event: LogEvent = JSON.parse(JSON.stringify(sent));
    this.#logs[host]?.push(event);
    this.#steps[host] = this.#stepper.next(step.snapshot, event);
    const { own, shares } = this.context(host).shared ?? {};
    const use = own?.rpm;
    if (!use || use.began === undefined || shares?.rpm?.began !== use.began) return;
    const window = this.used.get(use.began) ?? new Map<number, number>();
    this.used.set(use.began, window.set(host, Math.max(window.get(host) ?? 0, use.used)));
  }
}

type Deed =
  | { readonly do: 'calls'; readonly host: number; readonly number: number }
  | { readonly do: 'cut' | 'heal' | 'lose'; readonly host: number };

const hostNumber = fc.nat(4);
const deeds: fc.Arbitrary<{ readonly ms: number; readonly deed: Deed }[]> = fc.array(
  fc.record({
    ms: fc.constantFrom(0, 0, 1, 3, 20, 400, 5_000, 29_000, MINUTE, 3 * MINUTE),
    deed: fc.oneof(
      {
        weight: 12,
        arbitrary: fc.record({
          do: fc.constant('calls' as const),
          host: hostNumber,
          number: fc.integer({ min: 1, max: 30 }),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'heal' as const), host: hostNumber }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const), host: hostNumber }) },
    ),
  }),
  { maxLength: 60, size: 'max' },
);
const network = fc.record({
  hosts: fc.integer({ min: 1, max: 5 }),
  offsets: fc.array(fc.constantFrom(0, 90_000, -300_000, 7), { minLength: 5, maxLength: 5 }),
  delays: fc.array(fc.constantFrom(0, 1, 5, 200, 900), { minLength: 5, maxLength: 5 }),
});

const sliceOf = (limit: number, hosts: number): number => Math.max(1, Math.floor(limit / (2 * hosts)));

test('[G16,C13] whatever hosts call and hear in whichever order, a minute has no more than the limit and a slice of each host', (t) => {
  fc.assert(
    fc.property(network, fc.integer({ min: 1, max: 60 }), deeds, (net, rpmLimit, plan) => {
      const world = new World({ ...net, terms: { rpmLimit } });
      for (const { ms, deed } of plan) {
        world.pass(ms);
        const host = deed.host % net.hosts;
        if (deed.do === 'calls') for (let one = 0; one < deed.number; one += 1) world.call(host);
        else world[deed.do](host);
      }
      const most = rpmLimit + net.hosts * sliceOf(rpmLimit, net.hosts);
      for (const [window, used] of world.used) {
        const all = [...used.values()].reduce((sum, one) => sum + one, 0);
        if (all > most) throw new Error(`${all} calls in the window ${window}, where ${most} may be`);
      }
      if (!world.replays()) throw new Error('a replay decides otherwise');
      for (let host = 0; host < net.hosts; host += 1) world.heal(host);
      // What was lost counts no more two minutes later.
      world.pass(2 * MINUTE);
      for (let host = 0; host < net.hosts; host += 1) world.call(host);
      world.pass(10_000);
      for (let host = 1; host < net.hosts; host += 1) {
        if (world.sharedBy(host) !== world.sharedBy(0)) throw new Error('hosts do not share the same');
      }
    }),
    { numRuns: runs(120), seed: 4_000 },
  );
  t.pass();
});

test('[G16,C13] in a minute that really passes, all hosts together admit no more than two windows do', (t) => {
  const calls = fc.array(
    fc.record({
      ms: fc.constantFrom(0, 1, 20, 900, 7_000, 30_000),
      host: hostNumber,
      number: fc.integer({ min: 1, max: 40 }),
    }),
    { maxLength: 80, size: 'max' },
  );
  fc.assert(
    fc.property(network, fc.integer({ min: 1, max: 40 }), calls, (net, rpmLimit, plan) => {
      const world = new World({ ...net, terms: { rpmLimit } });
      for (const { ms, host, number } of plan) {
        world.pass(ms);
        for (let one = 0; one < number; one += 1) world.call(host % net.hosts);
      }
      const most = 2 * (rpmLimit + net.hosts * sliceOf(rpmLimit, net.hosts));
      const { admissions } = world;
      admissions.forEach(({ at }, index) => {
        const first = admissions[index - most];
        if (first && at - first.at < MINUTE - 4_000) {
          throw new Error(`${most + 1} calls in ${at - first.at} ms`);
        }
      });
    }),
    { numRuns: runs(120), seed: 4_000 },
  );
  t.pass();
});

test('[G16,C13] one host that calls alone is granted the whole limit, however many others are idle', (t) => {
  for (const hosts of [1, 2, 3, 5]) {
    for (const rpmLimit of [1, 2, 7, 200]) {
      const world = new World({
        hosts,
        terms: { rpmLimit },
        offsets: [0, 0, 0, 0, 0],
        delays: [2, 2, 2, 2, 2],
      });
      let admitted = 0;
      for (let tries = 0; tries < 3 * rpmLimit + 20; tries += 1) {
        if (world.call(0)) admitted += 1;
        world.pass(5);
      }
      t.is(admitted, rpmLimit, `${hosts} hosts, ${rpmLimit} a minute`);
      t.true(world.messages <= 4 * hosts * (2 + Math.log2(rpmLimit)), `${world.messages} messages`);
    }
  }
});

test('[G16,C13] hosts that call together share the limit, and the next minute begins for all of them', (t) => {
  const world = new World({
    hosts: 3,
    terms: { rpmLimit: 60 },
    offsets: [0, 240_000, -240_000],
    delays: [2, 40, 10],
  });
  for (const minute of [0, 1, 2]) {
    const before = world.admissions.length;
    for (let step = 0; step < 100; step += 1) {
      for (const host of [0, 1, 2]) world.call(host);
      world.pass(100);
    }
    const admitted = world.admissions.length - before;
    t.true(admitted >= 60 && admitted <= 60 + 30, `${admitted} in minute ${minute}`);
    world.pass(MINUTE);
  }
});

test('[G16,C13] a budget holds for all hosts, and what a host that is gone was granted comes back', (t) => {
  const world = new World({ hosts: 2, terms: { maxBudget: 10 }, offsets: [0, 0], delays: [2, 2] });
  for (let calls = 0; calls < 3; calls += 1) {
    t.true(world.call(1, 0.5));
    world.pass(10);
  }
  world.cut(1);
  let admitted = 3;
  for (let step = 0; step < 60; step += 1) {
    if (world.call(0, 0.5)) admitted += 1;
    world.pass(5_000);
  }
  t.true(
    admitted >= 20 && admitted <= 22,
    `${admitted} calls of 0.5, of which one host could not tell of two`,
  );
  t.is(world.context(0).spend, 10);
});

test('[G16,C13] whatever is spent on which host, a budget is passed by a slice of each host at most', (t) => {
  fc.assert(
    fc.property(network, fc.integer({ min: 1, max: 300 }), deeds, (net, cents, plan) => {
      const world = new World({ ...net, terms: { maxBudget: cents / 100 } });
      for (const { ms, deed } of plan) {
        world.pass(ms);
        const host = deed.host % net.hosts;
        if (deed.do === 'calls') for (let one = 0; one < deed.number; one += 1) world.call(host, 0.07);
      }
      const spent = world.admissions.length * 7;
      const slice = Math.max(7, cents / (4 * net.hosts));
      // What a host could not tell that it used of its last slice is taken back from it, beside what it uses ahead.
      const most = cents + 2 * net.hosts * slice;
      if (spent > most) throw new Error(`${spent} of ${cents}, where ${most} may be`);
      if (!world.replays()) throw new Error('a replay decides otherwise');
    }),
    { numRuns: runs(80), seed: 4_000 },
  );
  t.pass();
});

test('[G16,C13] a host that lost messages uses nothing of a limit until the minute that they were of is over', (t) => {
  const world = new World({ hosts: 2, terms: { rpmLimit: 40 }, offsets: [0, 0], delays: [2, 2] });
  t.true(world.call(0));
  world.pass(10);
  world.lose(0);
  t.false(world.call(0));
  t.true(world.call(1), 'the others go on');
  world.pass(MINUTE - 1);
  t.false(world.call(0));
  world.pass(1);
  t.true(world.call(0));
});
