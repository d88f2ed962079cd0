import test from 'ava';
import fc from 'fast-check';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import type { CallRequest } from '../../../src/machines/gateway/call-shapes.ts';
import { virtualKey } from '../../../src/machines/gateway/key.ts';
import type { KeyContext } from '../../../src/machines/gateway/key-shapes.ts';
import { runs } from '../../support/runs.ts';

const MINUTE = 60_000;
const SERVERS = ['memory', 'cluster', 'repo_wiki'];
const VALUES = ['k_0', 'k_1', 'k_2', 'k_3'];

/** What people do to a key and with it; costs are in hundredths, so that sums are exact. */
type Deed =
  | { do: 'call'; value: number; server: number; tool: 'find' | 'store'; cents: number; misplaced: boolean }
  | { do: 'list'; server: number }
  | { do: 'end'; which: number; outcome: 'ok' | 'unreachable' | 'gone' | 'cut' }
  | { do: 'limit'; rpm: number | undefined }
  | { do: 'budget'; cents: number | undefined }
  | { do: 'scope'; servers: number[]; tools: boolean }
  | { do: 'expire'; inMs: number }
  | { do: 'rotate'; overlapMs: number | undefined }
  | { do: 'revoke' };

interface Planned {
  /** How far the clock goes; below zero it is set back. */
  readonly ms: number;
  readonly deed: Deed;
}

const kind = <K extends Deed['do']>(name: K) => fc.constant(name);
const call = fc.record({
  do: kind('call'),
  value: fc.nat(3),
  server: fc.nat(2),
  tool: fc.constantFrom('find' as const, 'store' as const),
  cents: fc.constantFrom(0, 1, 10, 30, 70),
  misplaced: fc.constant(false),
});
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 10, arbitrary: call },
  { weight: 1, arbitrary: call.map((one) => ({ ...one, misplaced: true })) },
  { weight: 2, arbitrary: fc.record({ do: kind('list'), server: fc.nat(2) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: kind('end'),
      which: fc.nat(5),
      outcome: fc.constantFrom('ok' as const, 'unreachable' as const, 'gone' as const, 'cut' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: kind('limit'),
      rpm: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: kind('budget'), cents: fc.option(fc.nat(300), { nil: undefined }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: kind('scope'), servers: fc.uniqueArray(fc.nat(2)), tools: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: kind('expire'), inMs: fc.integer({ min: 1, max: 5 * MINUTE }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: kind('rotate'), overlapMs: fc.constantFrom(undefined, 0, 1_000, MINUTE) }),
  },
  { weight: 1, arbitrary: fc.record({ do: kind('revoke') }) },
);
const jump = fc.constantFrom(0, 1, 900, 20_000, MINUTE, 10 * MINUTE, -1, -30_000, -10 * MINUTE);

/** One key, what should be true of it, and the calls that are under way. */
class World {
  readonly #stepper = new MachineStepper(virtualKey);
  #step: Step = this.#stepper.initial();
  #now = 1_800_000_000_000;
  #elapsed = 0;
  #underWay: { cents: number }[] = [];
  #cents = 0;
  #newest = 0;
  #revoked = false;
  #servers = new Set(SERVERS);
  #tools = false;
  #budget: number | undefined;
  #expiresAt = Number.POSITIVE_INFINITY;
  readonly #until = new Map<string, number>();
  /** When calls of tools were admitted, in time that really passed. */
  readonly admittedAt: number[] = [];

  constructor(rpmLimit?: number) {
    const terms = { alias: 'a', servers: SERVERS, ...(rpmLimit !== undefined && { rpmLimit }) };
    this.#send({ type: 'KEY_CREATED', at: this.#now, presented: 'k_0', terms });
  }

  act({ ms, deed }: Planned): void {
    this.#now += ms;
    this.#elapsed += Math.max(0, ms);
    const at = this.#now;
    const update = (set: object, clear: string[] = []) => {
      this.#send({ type: 'KEY_UPDATED', at, set, clear });
    };
    switch (deed.do) {
      case 'call': {
        const server = SERVERS[deed.server] ?? '';
        this.#call({
          type: 'CALL',
          at,
          presented: VALUES[deed.value] ?? '',
          routes: [server],
          table: 1,
          method: 'tools/call',
          tool: `${server}-${deed.tool}`,
          ...(deed.cents > 0 && { cost: deed.cents / 100 }),
          ...(deed.misplaced && { authorization: 'master_key' }),
        });
        break;
      }
      case 'list': {
        const { window, spend } = this.#context;
        const routes = [SERVERS[deed.server] ?? ''];
        this.#send({
          type: 'CALL',
          at,
          presented: VALUES[this.#newest],
          routes,
          table: 1,
          method: 'tools/list',
        });
        check(
          this.#context.window.calls === window.calls && this.#context.spend === spend,
          'a list was counted',
        );
        break;
      }
      case 'end': {
        const [ended] = this.#underWay.splice(deed.which % Math.max(1, this.#underWay.length), 1);
        if (!ended) break;
        const cost = ended.cents > 0 ? { cost: ended.cents / 100 } : {};
        this.#send({ type: 'CALL_ENDED', outcome: deed.outcome, ms: 1, ...cost });
        if (deed.outcome === 'unreachable' || deed.outcome === 'gone') this.#cents -= ended.cents;
        break;
      }
      case 'limit':
        update(
          deed.rpm === undefined ? {} : { rpmLimit: deed.rpm },
          deed.rpm === undefined ? ['rpmLimit'] : [],
        );
        break;
      case 'budget':
        if (!this.#revoked) this.#budget = deed.cents;
        update(
          deed.cents === undefined ? {} : { maxBudget: deed.cents / 100 },
          deed.cents === undefined ? ['maxBudget'] : [],
        );
        break;
      case 'scope': {
        const servers = deed.servers.map((index) => SERVERS[index] ?? '');
        if (!this.#revoked) {
          this.#servers = new Set(servers);
          this.#tools = deed.tools;
        }
        const tools = SERVERS.map((server) => `${server}-find`);
        update({ servers, ...(deed.tools && { tools }) }, deed.tools ? [] : ['tools']);
        break;
      }
      case 'expire':
        if (!this.#revoked) this.#expiresAt = at + deed.inMs;
        update({ expiresAt: at + deed.inMs });
        break;
      case 'rotate': {
        if (this.#newest === VALUES.length - 1) break;
        if (!this.#revoked) {
          for (const value of VALUES.slice(0, this.#newest + 1)) {
            this.#until.set(
              value,
              Math.min(
                this.#until.get(value) ?? Number.POSITIVE_INFINITY,
                deed.overlapMs === undefined ? 0 : at + deed.overlapMs,
              ),
            );
          }
          this.#newest += 1;
        }
        const overlap = deed.overlapMs === undefined ? {} : { overlapMs: deed.overlapMs };
        this.#send({ type: 'KEY_ROTATED', at, presented: VALUES[this.#newest], ...overlap });
        break;
      }
      case 'revoke':
        this.#revoked = true;
        this.#send({ type: 'KEY_REVOKED', at });
        break;
    }
    const { spend } = this.#context;
    check(spend >= 0, 'the spend is negative');
    check(
      Math.round(spend * 100) === this.#cents,
      `${spend} is not what the calls cost, ${this.#cents} cents`,
    );
  }

  #call(event: CallRequest): void {
    const before = this.#context;
    const snapshot = this.#step.snapshot;
    this.#send(event);
    const decided = this.#step.effects.filter(
      ({ type }) => type === 'gateway.forward' || type === 'gateway.answer',
    );
    check(decided.length === 1, 'a call is forwarded or answered, once');
    const { type, params } = decided[0] ?? { type: '' };
    const cents = Math.round((event.cost ?? 0) * 100);
    const { presented, at } = event;
    if (type === 'gateway.forward') {
      const known = VALUES.indexOf(presented) <= this.#newest;
      check(!this.#revoked, 'forwarded after it was revoked');
      check(
        known && at < (this.#until.get(presented) ?? Number.POSITIVE_INFINITY),
        'forwarded by a value that is not good',
      );
      check(at < this.#expiresAt, 'forwarded after it had expired');
      check(this.#servers.has(event.routes[0] ?? ''), 'forwarded to a server out of scope');
      check(
        !this.#tools || event.tool?.endsWith('-find') === true,
        'forwarded to a tool that is not on its list',
      );
      check(event.authorization !== 'master_key', 'forwarded with a key where it may leak');
      this.#cents += cents;
      this.#underWay.push({ cents });
      this.admittedAt.push(this.#elapsed);
      const over = this.#budget !== undefined && cents > 0 && this.#cents > this.#budget;
      check(!over, 'charged beyond the budget');
      return;
    }
    const { rule, retryAfterMs } = params as { rule: string; retryAfterMs?: number };
    const { spend, calls, window } = this.#context;
    check(
      spend === before.spend && calls === before.calls && window.calls === before.window.calls,
      'a refusal was counted',
    );
    if (rule !== 'rate_limited') return;
    if (retryAfterMs === undefined || retryAfterMs <= 0 || retryAfterMs > MINUTE)
      throw new Error(`wait ${retryAfterMs} ms`);
    const later = (ms: number) =>
      this.#ruleOf(this.#stepper.next(this.#step.snapshot, { ...event, at: at + ms } as never));
    check(later(retryAfterMs - 1) !== 'admitted', 'it was told to wait longer than it has to');
    check(later(retryAfterMs) !== 'rate_limited', 'it waited as it was told, and is refused again');
    check(snapshot !== this.#step.snapshot, 'a refusal is recorded');
  }

  #ruleOf({ effects }: Step): string {
    const forwarded = effects.some(({ type }) => type === 'gateway.forward');
    return forwarded ? 'admitted' : String((effects[0]?.params as { rule?: string } | undefined)?.rule);
  }

  get #context(): KeyContext {
    return this.#step.context as unknown as KeyContext;
  }

  #send(event: object): void {
    this.#step = this.#stepper.next(this.#step.snapshot, event as LogEvent);
  }
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

test('[G16,G6,G14] whatever is done to a key and with it: nothing out of its terms is forwarded, and its sums are right', (t) => {
  const plan = fc.array(fc.record({ ms: jump, deed }), { maxLength: 60, size: 'max' });
  fc.assert(
    fc.property(fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }), plan, (limit, deeds) => {
      const world = new World(limit);
      for (const planned of deeds) world.act(planned);
    }),
    { numRuns: runs(800), seed: 4_000 },
  );
  t.pass();
});

test('[G16] however a clock is set back, a key gets at most its limit twice in a minute that really passes', (t) => {
  const steps = fc.constantFrom(0, 1, 500, 7_000, 30_000, -1, -5_000, -MINUTE, -60 * MINUTE);
  const plan = fc.array(fc.record({ ms: steps, deed: call.map((one) => ({ ...one, value: 0, cents: 0 })) }), {
    maxLength: 80,
    size: 'max',
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), plan, (limit, deeds) => {
      const world = new World(limit);
      for (const planned of deeds) world.act(planned);
      const { admittedAt } = world;
      admittedAt.forEach((last, index) => {
        const first = admittedAt[index - 2 * limit];
        check(
          first === undefined || last - first >= MINUTE,
          `${2 * limit + 1} calls in ${last - (first ?? 0)} ms`,
        );
      });
    }),
    { numRuns: runs(800), seed: 4_000 },
  );
  t.pass();
});
