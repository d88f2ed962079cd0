import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';

/** What a leg is given on the router; its label is for people, and changing it changes nothing there. */
export interface ListedLeg {
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  /** Set for a field of the config, which is held as a leg is. */
  readonly match?: 'equals' | 'contains';
}

export interface AdoptionContext {
  /** Base URL of the router elsewhere that the list is for. */
  readonly place: string;
  readonly legs: readonly ListedLeg[];
  /** Who confirmed this list, how, and when (epoch ms). */
  readonly adopted?: { readonly by: string; readonly how: AdoptedHow; readonly at: number } | undefined;
}

/** `option`: the configuration says `adopted: true`. */
export type AdoptedHow = 'operator' | 'option';

export type AdoptionEvent =
  | { type: 'LISTED'; place: string; legs: readonly ListedLeg[] }
  | { type: 'ADOPT'; by: string; how: AdoptedHow; at: number };

/**
 * Whether the list of legs may be written to a router elsewhere (R24). A list that nobody has confirmed for that router is
 * only observed; another list, or another router, needs another confirmation.
 */
export const adoption = setup({
  types: { context: {} as AdoptionContext, events: {} as AdoptionEvent },
  guards: {
    sameLegs: ({ context, event }) =>
      event.type === 'LISTED' && identityOf(event) === identityOf(context) && event.legs.length > 0,
  },
  actions: {
    'reconciler.legs_adopted': effect(),
    list: assign(({ event }) =>
      event.type === 'LISTED' ? { place: event.place, legs: event.legs, adopted: undefined } : {},
    ),
    label: assign(({ event }) => (event.type === 'LISTED' ? { legs: event.legs } : {})),
    adopt: assign(({ event }) => {
      if (event.type !== 'ADOPT') return {};
      const { by, how, at } = event;
      return { adopted: { by, how, at } };
    }),
  },
}).createMachine({
  id: 'reconciler-adoption',
  context: { place: '', legs: [] },
  initial: 'observing',
  states: {
    observing: {
      on: {
        LISTED: { actions: 'list' },
        ADOPT: { target: 'adopted', actions: ['adopt', 'reconciler.legs_adopted'] },
      },
    },
    adopted: {
      on: {
        LISTED: [
          { guard: 'sameLegs', actions: 'label' },
          { target: 'observing', actions: 'list' },
        ],
      },
    },
  },
});

/** What an adoption is of: the router, and what each leg is given there, whatever the order of the list. */
export function identityOf({ place, legs }: Pick<AdoptionContext, 'place' | 'legs'>): string {
  return [
    place,
    ...legs.map(({ intf, address, match }) => [intf, address, match ?? []].flat().join(' ')).toSorted(),
  ].join('\n');
}
