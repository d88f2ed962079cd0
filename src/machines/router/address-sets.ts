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
  /** What the sets must come to hold. */
  readonly wanted: SetPrefixes;
  /** What they hold. */
  readonly populated: SetPrefixes;
  /** When each set got what it holds, epoch milliseconds. */
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

/** The documents say "within about a minute"; this leaves some for the work itself. */
const DELAY_MS = 45_000;

const equal = (a: SetPrefixes, b: SetPrefixes): boolean => text(a) === text(b);
const text = (sets: SetPrefixes): string =>
  JSON.stringify(
    Object.keys(sets)
      .sort()
      .map((name) => [name, [...(sets[name] ?? [])].sort()]),
  );
const isNews = ({ context, event }: Args): boolean =>
  event.type === 'ADDRESSES' && !equal(event.sets, context.wanted);
const isStanding = ({ context, event }: Args): boolean =>
  event.type === 'ADDRESSES' && equal(event.sets, context.populated);
const ofPopulate = ({ event }: Args): boolean => 'effect' in event && event.effect === 'router.populate_sets';

/** When each set last changed, as far as this change goes. */
const sinceOf = ({ context, event }: Args): Record<string, number> => {
  if (event.type !== 'POPULATED') return { ...context.since };
  const entries = Object.entries(event.sets).map(([name, prefixes]): [string, number] => {
    const before = context.populated[name];
    const known = context.since[name];
    const stands = before !== undefined && equal({ name: before }, { name: prefixes });
    return [name, stands && known !== undefined ? known : event.at];
  });
  return Object.fromEntries(entries);
};

/**
 * When the packet filter's address sets follow the networks' addresses (R21): within a minute of the first change, in
 * one go for all changes of that time. Until then policy that goes by a set does not know a new prefix.
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
  },
  delays: { population: ({ context }) => context.delayMs },
}).createMachine({
  id: 'router-address-sets',
  context: ({ input }) => ({ delayMs: input?.delayMs ?? DELAY_MS, wanted: {}, populated: {}, since: {} }),
  initial: 'current',
  states: {
    current: { on: { ADDRESSES: { guard: isNews, target: 'behind', actions: 'want' } } },
    behind: {
      after: { population: 'populating' },
      on: {
        ADDRESSES: [
          { guard: isStanding, target: 'current', actions: 'want' },
          { guard: isNews, actions: 'want' },
        ],
      },
    },
    populating: {
      entry: { type: 'router.populate_sets', params: ({ context }) => ({ sets: context.wanted }) },
      on: {
        ADDRESSES: { guard: isNews, actions: 'want' },
        POPULATED: { target: 'settling', actions: 'populate' },
        'effect.failed': { guard: ofPopulate, target: 'behind' },
        'effect.lost': { guard: ofPopulate, target: 'behind' },
      },
    },
    settling: { always: [{ guard: 'behind', target: 'behind' }, { target: 'current' }] },
  },
});
