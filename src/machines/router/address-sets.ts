import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** The prefixes of each set, by the set's name. */
export type SetPrefixes = Readonly<Record<string, readonly string[]>>;

export interface AddressSetsInput {
  /** From a change of addresses until the sets follow, milliseconds. */
  readonly delayMs?: number;
}

export interface AddressSetsContext {
  readonly delayMs: number;
  /** The content that the sets must get. */
  readonly wanted: SetPrefixes;
  /** Their present content. */
  readonly populated: SetPrefixes;
  /** When each set got its present content, epoch milliseconds. */
  readonly since: Readonly<Record<string, number>>;
  /** Why the last filling failed; absent since one succeeded. */
  readonly refusal?: string | undefined;
}

export type AddressSetsEvent =
  | { readonly type: 'ADDRESSES'; readonly sets: SetPrefixes }
  | { readonly type: 'POPULATED'; readonly at: number; readonly sets: SetPrefixes }
  /** What the packet filter's sets hold, read when the router started. */
  | { readonly type: 'READ'; readonly sets: SetPrefixes }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message?: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Effect `router.populate_sets`: fill every set as listed, and remove the others. */
export interface PopulateParams {
  readonly sets: SetPrefixes;
}

type Args = { readonly context: AddressSetsContext; readonly event: AddressSetsEvent };

/** The documents say "within about a minute"; the rest of it is for the work itself. */
const DELAY_MS = 45_000;

const equal = (a: SetPrefixes, b: SetPrefixes): boolean => text(a) === text(b);
const text = (sets: SetPrefixes): string =>
  JSON.stringify(
    Object.keys(sets)
      .sort()
      .map((name) => [name, [...(sets[name] ?? [])].sort()]),
  );

const refusalOf = ({ event }: Args): string =>
  event.type === 'effect.failed' ? (event.message ?? 'it failed') : 'it was interrupted';

const refused =
  (state: 'firing' | 'resolved') =>
  (args: Args): Alert => ({
    name: 'router.sets_refused',
    severity: 'critical',
    text: 'The packet filter did not take the address sets, so per-network policy does not cover new prefixes. Filling them is tried again within a minute.',
    labels: { state, ...(state === 'firing' && { reason: refusalOf(args) }) },
  });

/** When each set last changed. */
const sinceOf = ({ context, event }: Args): Record<string, number> => {
  if (event.type !== 'POPULATED') return { ...context.since };
  const entries = Object.entries(event.sets).map(([name, prefixes]): [string, number] => {
    const before = context.populated[name];
    const since = context.since[name];
    const isUnchanged = before !== undefined && equal({ name: before }, { name: prefixes });
    return [name, isUnchanged && since !== undefined ? since : event.at];
  });
  return Object.fromEntries(entries);
};

/** A set without a prefix may just as well not be there. */
const filledOf = (sets: SetPrefixes): SetPrefixes =>
  Object.fromEntries(Object.entries(sets).filter(([, prefixes]) => prefixes.length > 0));

const alertRefused = { type: 'alerts.raise', params: refused('firing') } as const;
const alertResolved = { type: 'alerts.raise', params: refused('resolved') } as const;
const failed = [
  { guard: 'isFirstRefusal', target: 'behind', actions: [alertRefused, 'fail'] },
  { guard: 'ofPopulate', target: 'behind', actions: 'fail' },
] as const;

/**
 * Decides when the packet filter's address sets follow the networks' addresses (R21): within a minute of the first
 * change, once for all changes of that time. Until then a policy that uses a set does not cover a new prefix.
 */
export const addressSets = setup({
  types: {
    context: {} as AddressSetsContext,
    events: {} as AddressSetsEvent,
    input: {} as AddressSetsInput | undefined,
  },
  actions: {
    'router.populate_sets': effect<PopulateParams>(),
    want: assign({
      wanted: ({ context, event }) => (event.type === 'ADDRESSES' ? event.sets : context.wanted),
    }),
    'alerts.raise': effect<Alert>(),
    populate: assign((args) => {
      const { event } = args;
      if (event.type !== 'POPULATED') return {};
      return { populated: event.sets, since: sinceOf(args), refusal: undefined };
    }),
    find: assign(({ context, event }) => {
      if (event.type !== 'READ') return {};
      const since = Object.entries(context.since).filter(([name]) => event.sets[name] !== undefined);
      return { populated: event.sets, since: Object.fromEntries(since) };
    }),
    fail: assign({ refusal: refusalOf }),
  },
  guards: {
    behind: ({ context }) => !equal(context.wanted, context.populated),
    differs: ({ context, event }) => event.type === 'ADDRESSES' && !equal(event.sets, context.wanted),
    isPopulated: ({ context, event }) => event.type === 'ADDRESSES' && equal(event.sets, context.populated),
    lost: ({ context, event }) => event.type === 'READ' && !equal(event.sets, filledOf(context.wanted)),
    wasRefused: ({ context }) => context.refusal !== undefined,
    // Outcomes of other effects arrive here too.
    ofPopulate: ({ event }) => 'effect' in event && event.effect === 'router.populate_sets',
    isFirstRefusal: ({ context, event }) =>
      'effect' in event && event.effect === 'router.populate_sets' && context.refusal === undefined,
  },
  delays: { population: ({ context }) => context.delayMs },
}).createMachine({
  id: 'router-address-sets',
  context: ({ input }) => ({ delayMs: input?.delayMs ?? DELAY_MS, wanted: {}, populated: {}, since: {} }),
  initial: 'current',
  states: {
    current: {
      on: {
        ADDRESSES: { guard: 'differs', target: 'behind', actions: 'want' },
        READ: { guard: 'lost', target: 'populating', actions: 'find' },
      },
    },
    behind: {
      after: { population: 'populating' },
      on: {
        ADDRESSES: [
          { guard: 'isPopulated', target: 'current', actions: 'want' },
          { guard: 'differs', actions: 'want' },
        ],
        READ: { guard: 'lost', target: 'populating', actions: 'find' },
      },
    },
    populating: {
      entry: { type: 'router.populate_sets', params: ({ context }) => ({ sets: context.wanted }) },
      on: {
        ADDRESSES: { guard: 'differs', actions: 'want' },
        POPULATED: [
          { guard: 'wasRefused', target: 'populated', actions: ['populate', alertResolved] },
          { target: 'populated', actions: 'populate' },
        ],
        'effect.failed': failed,
        'effect.lost': failed,
      },
    },
    /** Choice: have the addresses changed meanwhile? */
    populated: { always: [{ guard: 'behind', target: 'behind' }, { target: 'current' }] },
  },
});
