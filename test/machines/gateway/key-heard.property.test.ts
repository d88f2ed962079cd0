import test from 'ava';
import fc from 'fast-check';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { virtualKey } from '../../../src/machines/gateway/key.ts';
import type { KeyContext, KeyEvent } from '../../../src/machines/gateway/key-shapes.ts';
import { runs } from '../../support/runs.ts';

const HOSTS = ['a', 'b', 'c'] as const;
const START = 1_800_000_000_000;
const terms = { alias: 'desk', servers: ['notes'], rpmLimit: 20, maxBudget: 50 };

/** What every host is told, unless it misses it. */
type Message = 'update' | 'rotate' | 'revoke' | 'slice';
type Deed =
  | { readonly do: 'tell'; readonly what: Message; readonly missedBy: readonly number[] }
  | { readonly do: 'call'; readonly host: number }
  | { readonly do: 'share'; readonly from: number; readonly late: number };

const hostNumber = fc.nat(2);
const deeds: fc.Arbitrary<Deed[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('tell' as const),
        what: fc.constantFrom<Message[]>('update', 'update', 'rotate', 'slice', 'slice', 'slice', 'revoke'),
        missedBy: fc.uniqueArray(hostNumber, { maxLength: 2 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('call' as const), host: hostNumber }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('share' as const), from: hostNumber, late: fc.nat(4) }),
    },
  ),
  { maxLength: 40, size: 'max' },
);

/** One key on three hosts, which miss messages and hear of each other, also what was so some time ago. */
class World {
  readonly #stepper = new MachineStepper(virtualKey);
  readonly #steps: Step[] = HOSTS.map(() => this.#stepper.initial());
  /** What each host said of itself, oldest first. */
  readonly #said: KeyContext[][] = HOSTS.map(() => []);
  #order = 0;

  constructor(missedBy: readonly number[]) {
    this.#tell({ type: 'KEY_CREATED', at: START, terms, presented: 'k_0' }, missedBy);
  }

  do(deed: Deed): void {
    const at = START + this.#order;
    if (deed.do === 'call') {
      const cluster = { host: HOSTS[deed.host] ?? '', hosts: 3 };
      const call = { presented: 'k_0', routes: ['notes'], table: 1, method: 'tools/call', tool: 'notes-x' };
      this.#send(deed.host, { type: 'CALL', at, ...call, cost: 1, cluster });
    } else if (deed.do === 'share') this.share(deed.from, deed.late);
    else if (deed.what === 'slice') {
      const host = HOSTS[this.#order % 3] ?? '';
      const wants = [{ name: 'budget', used: this.#order / 10, need: 1 }];
      this.#tell(
        { type: 'SLICE_WANTED', at, sentAt: at, host, here: '', hosts: 3, order: 0, wants },
        deed.missedBy,
      );
    } else if (deed.what === 'revoke') this.#tell({ type: 'KEY_REVOKED', at }, deed.missedBy);
    else if (deed.what === 'rotate')
      this.#tell(
        { type: 'KEY_ROTATED', at, presented: `k_${this.#order}`, overlapMs: 60_000 },
        deed.missedBy,
      );
    else this.#tell({ type: 'KEY_UPDATED', at, set: { owner: `ann ${this.#order}` } }, deed.missedBy);
  }

  /** A host says what it knows, or knew some time ago, to the others. */
  share(from: number, late: number): void {
    const context = this.#said[from]?.at(-1 - late) ?? this.context(from);
    for (const to of HOSTS.keys()) {
      if (to === from) continue;
      const at = START + this.#order;
      this.#send(to, { type: 'KEY_HEARD', at, from: HOSTS[from] ?? '', aheadMs: 0, context });
    }
  }

  context(host: number): KeyContext {
    return this.#steps[host]?.context as KeyContext;
  }

  /** What hosts must know alike. */
  known(host: number) {
    const { terms, presents, revision, revokedAt, changed, spend } = this.context(host);
    return { state: this.#steps[host]?.value, terms, presents, revision, revokedAt, changed, spend };
  }

  #tell(event: KeyEvent, missedBy: readonly number[]): void {
    this.#order += 1;
    for (const [host, name] of HOSTS.entries()) {
      // As the route: who does not have the key leaves its changes to whom it hears of it.
      const isHere = event.type === 'KEY_CREATED' || this.context(host).terms !== undefined;
      const here = event.type === 'SLICE_WANTED' && { here: name };
      if (isHere && !missedBy.includes(host))
        this.#send(host, { ...event, order: this.#order, ...here } as KeyEvent);
    }
  }

  #send(host: number, sent: KeyEvent): void {
    const step = this.#steps[host];
    if (!step) return;
    const before = this.context(host);
    const wasRevoked = step.value === 'revoked';
    const event: LogEvent = JSON.parse(JSON.stringify(sent));
    const next = this.#stepper.next(step.snapshot, event);
    this.#steps[host] = next;
    const after = this.context(host);
    this.#said[host]?.push(after);
    const about = `${HOSTS[host]} by ${JSON.stringify(event)}`;
    if (wasRevoked && (next.value !== 'revoked' || after.revokedAt === undefined))
      throw new Error(`a revoked key is ${String(next.value)} again on ${about}`);
    for (const name of ['revision', 'calls', 'refused', 'spend'] as const)
      if (after[name] < before[name])
        throw new Error(`${name} went from ${before[name]} to ${after[name]} on ${about}`);
    for (const name of ['order', 'changed'] as const)
      if ((after[name] ?? 0) < (before[name] ?? 0)) throw new Error(`${name} went back on ${about}`);
    const [own, owned] = [before.shared?.own.budget, after.shared?.own.budget];
    const isSame = before.shared?.host === after.shared?.host;
    if (isSame && own && owned && own.began === owned.began && owned.used < own.used)
      throw new Error(`what the host used went back on ${about}`);
  }
}

test('[C13,G18] whatever hosts miss and in whichever order they hear of each other, a revoked key stays revoked and no counter goes back', (t) => {
  fc.assert(
    fc.property(fc.uniqueArray(hostNumber, { maxLength: 2 }), deeds, (missedBy, plan) => {
      const world = new World(missedBy);
      for (const deed of plan) world.do(deed);
      const wasRevoked = HOSTS.keys().some((host) => world.known(host).state === 'revoked');
      const newest = Math.max(...HOSTS.keys().map((host) => world.known(host).changed ?? 0));
      for (let round = 0; round < 3; round += 1) for (const host of HOSTS.keys()) world.share(host, 0);
      for (const host of HOSTS.keys()) {
        t.deepEqual(world.known(host), world.known(0), 'all know the same in the end');
        if (wasRevoked) t.is(world.known(host).state, 'revoked');
        t.is(world.known(host).changed, newest);
      }
    }),
    { numRuns: runs(300), seed: 22 },
  );
});

test('[C13] a revocation that comes behind a newer message is taken all the same', (t) => {
  const stepper = new MachineStepper(virtualKey);
  const events: KeyEvent[] = [
    { type: 'KEY_CREATED', at: START, order: 1, terms, presented: 'k_0' },
    { type: 'KEY_UPDATED', at: START, order: 9, set: { owner: 'ann' } },
    { type: 'KEY_REVOKED', at: START, order: 5 },
  ];
  let step = stepper.initial();
  for (const event of events) step = stepper.next(step.snapshot, JSON.parse(JSON.stringify(event)));
  t.is(step.value, 'revoked');
});
