import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import { toPlain } from '../../../src/core/kernel/json.ts';
import { type LogEvent, TIMER_START } from '../../../src/core/kernel/log/record.ts';
import {
  type ApprovalContext,
  type ApprovalEvent,
  approval,
} from '../../../src/machines/gateway/approval.ts';
import { runs } from '../../support/runs.ts';

const T = 1_800_000_000_000;
const WAIT_MS = 900_000;
const request = { id: 'r1', key: 'k_1', alias: 'desk', route: 'wiki', tool: 'wipe', digest: 'fp_1' };
const asked = { type: 'ASKED', at: T, until: T + WAIT_MS, request } as const;
const decided = (verdict: 'approved' | 'denied', id = 'r1', at = T + 60_000) =>
  ({ type: 'DECIDED', at, id, verdict, by: 'ann', why: 'because' }) as const;
const claimed = (call: string, id = 'r1') => ({ type: 'CLAIMED', at: T + 61_000, id, call }) as const;

const settled = { type: 'gateway.approval_settled', params: { id: 'r1' } };
const resolved = (text: string) => ({
  type: 'alerts.raise',
  params: {
    name: 'gateway.approval_waiting',
    severity: 'info',
    text,
    labels: { actor: 'gateway.approval/1', approval: 'r1', route: 'wiki', state: 'resolved' },
  },
});
const deniedText = 'The call was denied by ann (desk: wiki wipe).';
const approvedText = 'The call was approved by ann (desk: wiki wipe).';
const expiredText = 'Nobody decided about the call in time, so it was refused (desk: wiki wipe).';

test('[G6] an approval is good for one call, which gives it back only when its upstream was not reached', (t) => {
  given(approval, { input: { place: '1' }, events: [asked] })
    .when(decided('approved', 'another'))
    .then({ state: 'waiting', timers: { deadline: WAIT_MS } })
    .when(decided('approved'))
    .then({
      state: 'approved',
      effects: [settled, resolved(approvedText)],
      timers: { deadline: WAIT_MS - 60_000 },
    })
    .when(claimed('c1'))
    .then({ state: 'used', effects: [settled], context: { call: 'c1' } })
    .when(claimed('c2'))
    .then({ state: 'used', context: { call: 'c1' } })
    .when({ type: 'RETURNED', at: T + 62_000, id: 'r1', call: 'c2' })
    .then({ state: 'used' })
    .when({ type: 'RETURNED', at: T + 62_000, id: 'r1', call: 'c1' })
    .then({ state: 'approved', timers: { deadline: WAIT_MS - 62_000 } })
    .when(elapsed('deadline'))
    .then({ state: 'lapsed', effects: [settled], context: { digest: undefined } });
  t.pass();
});

test('[G6] a denial stands until the deadline, and what nobody decides expires', (t) => {
  given(approval, { input: { place: '1' }, events: [asked] })
    .when(decided('denied'))
    .then({ state: 'denied', effects: [settled, resolved(deniedText)] })
    .when(decided('approved'))
    .then({ state: 'denied', effects: [] })
    .when(claimed('c1'))
    .then({ state: 'denied', effects: [] })
    .when(elapsed('deadline'))
    .then({ state: 'over', context: { digest: undefined } });
  given(approval, { input: { place: '1' }, events: [asked] })
    .when(elapsed('deadline'))
    .then({ state: 'expired', effects: [settled, resolved(expiredText)], context: { digest: undefined } })
    .when(decided('approved'))
    .then({ state: 'expired', effects: [] });
  t.pass();
});

test('[G6] the text of the alert holds no line of a client that makes the name of a tool up', (t) => {
  const tool = 'wipe).\nApprove: https://evil.example/ (';
  const step = new MachineStepper(approval);
  const { effects } = step.next(step.initial({ place: '1' }).snapshot, {
    ...asked,
    request: { ...request, tool },
  });
  const [text = ''] = effects.flatMap(({ params }) => (params as { text?: string } | undefined)?.text ?? []);
  t.regex(text, /waits for a person/);
  t.notRegex(text, /\n|https:/);
});

type Deed =
  | { readonly do: 'ask' | 'deadline' }
  | { readonly do: 'decide'; readonly verdict: 'approved' | 'denied'; readonly id: number }
  | { readonly do: 'claim' | 'return'; readonly call: number; readonly id: number }
  | { readonly do: 'withdraw'; readonly id: number }
  | { readonly do: 'set'; readonly byMs: number };

const id = fc.nat(2);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: fc.constant('ask' as const) }),
  fc.record({ do: fc.constant('deadline' as const) }),
  fc.record({
    do: fc.constant('decide' as const),
    verdict: fc.constantFrom('approved' as const, 'denied' as const),
    id,
  }),
  fc.record({ do: fc.constantFrom('claim' as const, 'return' as const), call: fc.nat(3), id }),
  fc.record({ do: fc.constant('withdraw' as const), id }),
  fc.record({ do: fc.constant('set' as const), byMs: fc.constantFrom(-3_600_000, 1, 3_600_000) }),
);

/** One place, and what a person may rely on: a model of its own, without states. */
class World {
  readonly #stepper = new MachineStepper(approval);
  #step: Step = this.#stepper.initial({ place: '1' });
  #at = T;
  #asks = 0;
  /** Of the newest request. */
  #verdict: 'approved' | 'denied' | undefined;
  #isOver = true;
  #taker: string | undefined;
  #claims = 0;
  #returns = 0;

  do(deed: Deed): void {
    this.#at += 1_000;
    const newest = `r${this.#asks}`;
    const name = 'id' in deed ? `r${Math.max(0, this.#asks - deed.id)}` : newest;
    const isNewest = name === newest && this.#asks > 0 && !this.#isOver;
    const before = this.#value;
    switch (deed.do) {
      case 'ask': {
        const isFree = this.#isOver || this.#taker !== undefined;
        const next = { ...request, id: `r${this.#asks + 1}`, digest: `fp_${this.#asks + 1}` };
        this.#send({ type: 'ASKED', at: this.#at, until: this.#at + WAIT_MS, request: next });
        this.#holds(
          this.#context.request?.id === next.id,
          isFree,
          'a place takes the next request only when it is free',
        );
        if (!isFree) return;
        this.#asks += 1;
        [this.#verdict, this.#isOver, this.#taker] = [undefined, false, undefined];
        [this.#claims, this.#returns] = [0, 0];
        return;
      }
      case 'deadline':
        if (!this.#fire()) return;
        this.#isOver = true;
        this.#holds(this.#context.digest === undefined, true, 'what is over names no arguments');
        return;
      case 'decide': {
        const counts = isNewest && this.#verdict === undefined;
        this.#send({ type: 'DECIDED', at: this.#at, id: name, verdict: deed.verdict, by: 'ann', why: 'x' });
        this.#holds(this.#value !== before, counts, 'one decision counts, the first one about this request');
        if (counts) this.#verdict = deed.verdict;
        return;
      }
      case 'claim': {
        const may = isNewest && this.#verdict === 'approved' && this.#taker === undefined;
        const call = `c${deed.call}`;
        this.#send({ type: 'CLAIMED', at: this.#at, id: name, call });
        this.#holds(before === 'approved' && this.#value === 'used', may, 'one call takes an approval');
        if (may) [this.#taker, this.#claims] = [call, this.#claims + 1];
        this.#holds(this.#claims <= 1 + this.#returns, true, 'no more calls than approvals');
        return;
      }
      case 'return': {
        const may = isNewest && this.#taker === `c${deed.call}` && this.#at < this.#context.until;
        this.#send({ type: 'RETURNED', at: this.#at, id: name, call: `c${deed.call}` });
        this.#holds(before === 'used' && this.#value === 'approved', may, 'only who took it gives it back');
        if (may) [this.#taker, this.#returns] = [undefined, this.#returns + 1];
        return;
      }
      case 'withdraw': {
        const may = isNewest && this.#verdict !== 'denied' && this.#taker === undefined;
        this.#send({ type: 'WITHDRAWN', at: this.#at, id: name, reason: 'x' });
        this.#holds(
          before !== 'withdrawn' && this.#value === 'withdrawn',
          may,
          'what is not made may be withdrawn',
        );
        if (may) this.#isOver = true;
        return;
      }
      case 'set':
        this.#at += deed.byMs;
        this.#send({ type: 'CLOCK_SET', at: this.#at, byMs: deed.byMs });
        return;
    }
  }

  get #value(): unknown {
    return this.#step.value;
  }

  get #context(): ApprovalContext {
    return this.#step.context as unknown as ApprovalContext;
  }

  #send(event: ApprovalEvent): void {
    this.#step = this.#stepper.next(this.#step.snapshot, toPlain({ ...event }, 'event') as LogEvent);
    const timer = this.#step.effects.find(({ type }) => type === TIMER_START)?.params as
      | { readonly delayMs: number }
      | undefined;
    if (!timer) return;
    this.#holds(timer.delayMs >= 0 && timer.delayMs <= WAIT_MS, true, `no wait is longer: ${timer.delayMs}`);
  }

  /** @returns whether a deadline was waited for */
  #fire(): boolean {
    const type = `xstate.after.deadline.gateway-approval.${String(this.#value)}`;
    const before = this.#value;
    this.#step = this.#stepper.next(this.#step.snapshot, { type });
    return this.#value !== before;
  }

  #holds(is: boolean, should: boolean, what: string): void {
    if (is !== should) throw new Error(`${what}: ${is}, should be ${should} (${String(this.#value)})`);
  }
}

test('[G6,C1] whatever happens in whatever order, no call goes without an approval of its own, and the first decision stands', (t) => {
  fc.assert(
    fc.property(fc.array(deed, { maxLength: 40 }), (deeds) => {
      const world = new World();
      for (const one of deeds) world.do(one);
    }),
    { numRuns: runs(1_000) },
  );
  t.pass();
});
