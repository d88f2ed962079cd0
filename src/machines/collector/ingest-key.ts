import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';

/** Which of the keys that the hosts of a cluster derive alike are in force. None of it is secret. */
export interface IngestKeyContext {
  /** The newest message that was taken, by its place among all messages to every host. */
  readonly order: number;
  /** Name of the key in use, from which hosts derive it with the cluster's key. */
  readonly current: string;
  /** The one before it, which admits until it is retired. */
  readonly previous?: string | undefined;
  /** The one that was retired last. */
  readonly retired?: string | undefined;
}

export type IngestKeyEvent =
  /** A rotation makes another key beside the present one. Where another key is in use by now, it changes nothing. */
  | { readonly type: 'RENEWED'; readonly order: number; readonly from: string; readonly to: string }
  /** The overlap is over: of the two only the newer one admits. */
  | { readonly type: 'RETIRED'; readonly order: number; readonly current: string };

/** The name of the key before the first rotation. */
export const FIRST_KEY = 'first';

const renewed = {
  guard: 'renews',
  target: 'overlap',
  reenter: true,
  actions: [
    'renew',
    {
      type: 'collector.store_shared_key',
      params: ({ context }: { readonly context: IngestKeyContext }) => ({
        from: context.previous ?? FIRST_KEY,
        to: context.current,
      }),
    },
  ],
} as const;

/** The ingest key of a cluster whose hosts are their own collectors (C13, O9): each host takes the same changes in the same order. */
export const ingestKey = setup({
  types: { context: {} as IngestKeyContext, events: {} as IngestKeyEvent },
  guards: {
    renews: ({ context, event }) =>
      event.type === 'RENEWED' && event.order > context.order && event.from === context.current,
    retires: ({ context, event }) =>
      event.type === 'RETIRED' &&
      event.order > context.order &&
      event.current === context.current &&
      context.previous !== undefined,
  },
  actions: {
    'collector.store_shared_key': effect<{ from: string; to: string }>(),
    renew: assign(({ context, event }) =>
      event.type === 'RENEWED' ? { order: event.order, current: event.to, previous: context.current } : {},
    ),
    retire: assign(({ context, event }) => ({
      order: event.order,
      previous: undefined,
      retired: context.previous,
    })),
  },
}).createMachine({
  id: 'collector-ingest-key',
  context: { order: 0, current: FIRST_KEY },
  initial: 'one',
  states: {
    one: { on: { RENEWED: renewed } },
    /** The key before it still admits. */
    overlap: {
      on: {
        RENEWED: renewed,
        RETIRED: { guard: 'retires', target: 'one', actions: 'retire' },
      },
    },
  },
});
