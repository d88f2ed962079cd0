import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';

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
}

export type AddressSetsEvent =
  | { readonly type: 'ADDRESSES'; readonly sets: SetPrefixes }
  | { readonly type: 'POPULATED'; readonly at: number; readonly sets: SetPrefixes }
  | { readonly type: 'effect.failed'; readonly effect: string }
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
    populate: assign((args) => {
      const { event } = args;
      return event.type === 'POPULATED' ? { populated: event.sets, since: sinceOf(args) } : {};
    }),
  },
  guards: {
    behind: ({ context }) => !equal(context.wanted, context.populated),
    differs: ({ context, event }) => event.type === 'ADDRESSES' && !equal(event.sets, context.wanted),
    isPopulated: ({ context, event }) => event.type === 'ADDRESSES' && equal(event.sets, context.populated),
    // Outcomes of other effects arrive here too.
    ofPopulate: ({ event }) => 'effect' in event && event.effect === 'router.populate_sets',
  },
  delays: { population: ({ context }) => context.delayMs },
}).createMachine({
  id: 'router-address-sets',
  context: ({ input }) => ({ delayMs: input?.delayMs ?? DELAY_MS, wanted: {}, populated: {}, since: {} }),
  initial: 'current',
  states: {
    current: { on: { ADDRESSES: { guard: 'differs', target: 'behind', actions: 'want' } } },
    behind: {
      after: { population: 'populating' },
      on: {
        ADDRESSES: [
          { guard: 'isPopulated', target: 'current', actions: 'want' },
          { guard: 'differs', actions: 'want' },
        ],
      },
    },
    populating: {
      entry: { type: 'router.populate_sets', params: ({ context }) => ({ sets: context.wanted }) },
      on: {
        ADDRESSES: { guard: 'differs', actions: 'want' },
        POPULATED: { target: 'populated', actions: 'populate' },
        'effect.failed': { guard: 'ofPopulate', target: 'behind' },
        'effect.lost': { guard: 'ofPopulate', target: 'behind' },
      },
    },
    /** Choice: have the addresses changed meanwhile? */
    populated: { always: [{ guard: 'behind', target: 'behind' }, { target: 'current' }] },
  },
});
