import test from 'ava';
import fc from 'fast-check';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { leg as reconciler } from '../../../src/machines/reconciler/leg.ts';
import { legDefaults } from '../../../src/machines/reconciler/leg-shapes.ts';
import { runs } from '../../support/runs.ts';

const address = 'fd5e:21aa:90c4:20::1/64';
const leg = { intf: 'eth1.20', label: 'IoT', address, ...legDefaults };

/** How the router's answer to one question differs from the truth, or from good manners. */
type Mood = 'plain' | 'silent' | 'refusesButApplies' | 'refuses' | 'vanishes' | 'readsStale' | 'unreachable';

/** What others do to the router. A publish may come before the save, after it, or never. */
type Deed =
  | { do: 'save'; keepsAddress: boolean; publishes: 'before' | 'after' | 'never' }
  | { do: 'open' | 'close' | 'reconnect' | 'publish' }
  | { do: 'mood'; mood: Mood };

interface Planned {
  readonly afterMs: number;
  readonly deed: Deed;
}

const mood = fc.constantFrom<Mood[]>(
  'plain',
  'silent',
  'refusesButApplies',
  'refuses',
  'vanishes',
  'readsStale',
  'unreachable',
);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    do: fc.constant('save' as const),
    keepsAddress: fc.boolean(),
    publishes: fc.constantFrom('before' as const, 'after' as const, 'never' as const),
  }),
  fc.record({
    do: fc.constantFrom('open' as const, 'close' as const, 'reconnect' as const, 'publish' as const),
  }),
  fc.record({
    do: fc.constant('mood' as const),
    mood,
  }),
);
const plan = fc.array(fc.record({ afterMs: fc.constantFrom(0, 3, 20, 30, 400, 1_500, 7_000), deed }), {
  maxLength: 40,
  size: 'max',
});

/** One actor and one router, in virtual time: a queue of what comes due. */
class World {
  readonly #stepper = new MachineStepper(reconciler);
  #step: Step = this.#stepper.initial(leg);
  readonly #queue: { at: number; run: () => void; timer?: string }[] = [];
  #now = 0;
  #ncid = 1;
  #whole = true;
  #before = { ncid: 1, whole: true };
  #transaction = false;
  #mood: Mood = 'plain';
  readonly #random: () => number;
  /** Adds asked for since the last news or rest. */
  burst = 0;
  mostTries = 0;
  alerts = 0;

  constructor(random: () => number) {
    this.#random = random;
    this.send({ type: 'RESYNC', reason: 'start' });
  }

  get state(): unknown {
    return this.#step.value;
  }

  get whole(): boolean {
    return this.#whole;
  }

  get told(): boolean {
    return (this.#step.context as { alerted?: string }).alerted !== undefined;
  }

  act(deed: Deed): void {
    switch (deed.do) {
      case 'save':
        if (this.#transaction) return;
        if (deed.publishes === 'before') {
          this.#publish();
          this.#later(10, () => this.#save(deed.keepsAddress && this.#whole));
        } else {
          this.#save(deed.keepsAddress && this.#whole);
          if (deed.publishes === 'after') this.#publish();
        }
        return;
      case 'open':
        this.#transaction = true;
        return;
      case 'close':
        this.#transaction = false;
        return;
      case 'reconnect':
        this.send({ type: 'RESYNC', reason: 'connected' });
        return;
      case 'publish':
        this.#publish();
        return;
      case 'mood':
        this.#mood = deed.mood;
        return;
    }
  }

  /** Peace: nobody else writes, and the router takes what it is given. */
  relent(): void {
    this.#transaction = false;
    this.#mood = 'plain';
  }

  run(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#queue.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#queue.splice(this.#queue.indexOf(due), 1);
      this.#now = Math.max(this.#now, due.at);
      due.run();
    }
    this.#now = end;
  }

  send(event: LogEvent): void {
    this.#step = this.#stepper.next(this.#step.snapshot, event);
    const { tries } = this.#step.context as { tries: number };
    this.mostTries = Math.max(this.mostTries, tries);
    if (event.type === 'CHANGED' || event.type === 'RESYNC' || this.state === 'whole') this.burst = 0;
    for (const { type, params } of this.#step.effects) {
      const { timer, delayMs } = (params ?? {}) as { timer: string; delayMs: number };
      if (type === 'timer.start') {
        if (!(delayMs >= 0)) throw new Error(`a delay of ${delayMs} ms`);
        this.#queue.push({ at: this.#now + delayMs, run: () => this.send({ type: timer }), timer });
      } else if (type === 'timer.cancel') {
        const index = this.#queue.findIndex((waiting) => waiting.timer === timer);
        if (index >= 0) this.#queue.splice(index, 1);
      } else if (type === 'reconciler.read_leg') {
        this.#later(2 + 60 * this.#random() ** 2, () => this.#read());
      } else if (type === 'reconciler.read_link') {
        this.#later(2, () => this.send({ type: 'LINK_READ', present: this.#whole, at: this.#now }));
      } else if (type === 'reconciler.add_address') {
        this.burst += 1;
        const { ncid } = params as { ncid: string };
        this.#later(5 + 3_000 * this.#random() ** 3, () => this.#add(Number(ncid)));
      } else if (type === 'alerts.raise') {
        this.alerts += 1;
      }
    }
  }

  #later(ms: number, run: () => void): void {
    this.#queue.push({ at: this.#now + ms, run });
  }

  #publish(): void {
    this.send({ type: 'CHANGED', channel: 'router.iface_change_applied' });
  }

  #save(whole: boolean): void {
    this.#before = { ncid: this.#ncid, whole: this.#whole };
    this.#ncid += 1;
    this.#whole = whole;
  }

  #read(): void {
    const mood = this.#moodOnce();
    if (mood === 'unreachable') {
      this.send({ type: 'UNREACHABLE', reason: 'refused', jitter: this.#random(), at: this.#now });
      return;
    }
    const seen = mood === 'readsStale' ? this.#before : { ncid: this.#ncid, whole: this.#whole };
    if (mood === 'vanishes') this.send({ type: 'LEG_ABSENT', ncid: String(seen.ncid) });
    else {
      const addresses = seen.whole ? [address] : [];
      this.send({ type: 'LEG_READ', ncid: String(seen.ncid), addresses, at: this.#now });
    }
  }

  #add(ncid: number): void {
    const jitter = this.#random();
    if (this.#transaction || ncid !== this.#ncid) {
      this.send(this.#transaction ? { type: 'PENDING' } : { type: 'CONFLICT', jitter });
      return;
    }
    const mood = this.#moodOnce();
    if (mood !== 'refuses') {
      this.#publish();
      this.#save(true);
    }
    if (mood === 'silent') this.send({ type: 'UNKNOWN', reason: 'no answer', jitter });
    else if (mood === 'refuses' || mood === 'refusesButApplies') {
      this.send({ type: 'REFUSED', errors: ['no'], jitter });
    } else this.send({ type: 'ADDED', ncid: String(this.#ncid), posted: [] });
  }

  /** A mood shows often enough to use up the tries, seldom enough to let some writes through. */
  #moodOnce(): Mood {
    return this.#random() < 0.1 ? 'plain' : this.#mood;
  }
}

const dice = fc.infiniteStream(fc.noBias(fc.nat(999)));

const live = (body: (world: World) => void) =>
  fc.assert(
    fc.property(plan, dice, mood, fc.constantFrom(0, 3_000, 60_000), (planned, stream, last, calmMs) => {
      const world = new World(() => stream.next().value / 1_000);
      for (const { afterMs, deed } of planned as Planned[]) {
        world.run(afterMs);
        world.act(deed);
      }
      // Long enough in one mood to give up, before peace comes.
      world.act({ do: 'mood', mood: last });
      world.act({ do: 'save', keepsAddress: false, publishes: 'after' });
      world.run(calmMs);
      body(world);
    }),
    { numRuns: runs(300), seed: 20_260_102 },
  );

test('[R24] whatever happens in whatever order, a save that drops the address is healed within seconds', (t) => {
  live((world) => {
    world.relent();
    world.act({ do: 'save', keepsAddress: false, publishes: 'before' });
    world.run(10);
    world.run(15_000);
    if (!world.whole) throw new Error(`still missing in state ${String(world.state)}`);
  });
  t.pass();
});

test('[R24] whatever happens in whatever order, a resync heals without any event', (t) => {
  live((world) => {
    world.relent();
    world.run(2 * legDefaults.resyncMs);
    if (!world.whole) throw new Error(`still missing in state ${String(world.state)}`);
    if (world.told) throw new Error('nobody was told that it is over');
    if (world.state !== 'whole') throw new Error(`restless in state ${String(world.state)}`);
  });
  t.pass();
});

test('[R25] tries are bounded, whatever happens', (t) => {
  live((world) => {
    if (world.mostTries > legDefaults.maxTries) throw new Error(`${world.mostTries} tries`);
  });
  t.pass();
});

test('[R25] a router that never gives in is asked for ever, ever more seldom, and a person is told once', (t) => {
  const world = new World(() => 0.9);
  world.run(5_000);
  world.act({ do: 'mood', mood: 'refuses' });
  world.act({ do: 'save', keepsAddress: false, publishes: 'after' });
  world.run(25_000);
  t.true(world.burst >= 4 && world.burst <= 6, `${world.burst} tries in 25 s`);
  t.is(world.alerts, 0);
  world.run(3_600_000);
  t.is(world.state, 'refused');
  t.true(world.burst > 65 && world.burst < 90, `${world.burst} tries in an hour`);
  t.is(world.alerts, 1);
  world.relent();
  world.run(60_000);
  t.true(world.whole);
});

test('[R26] a save that drops the address is healed within seconds, heard of or found out', (t) => {
  const world = new World(() => 0);
  for (const publishes of ['before', 'after'] as const) {
    world.run(5_000);
    world.act({ do: 'save', keepsAddress: false, publishes });
    world.run(100);
    t.true(world.whole, publishes);
  }
  world.run(5_000);
  world.act({ do: 'save', keepsAddress: false, publishes: 'never' });
  world.run(legDefaults.resyncMs);
  t.true(world.whole, 'found out by the resync');
});
