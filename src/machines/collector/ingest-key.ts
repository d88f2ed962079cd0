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
  | { readonly type: 'RETIRED'; readonly order: number; readonly current: string }
  /** Another host knows of a change that this one missed. */
  | { readonly type: 'HEARD'; readonly from: string; readonly keys: IngestKeyContext };

interface Args {
  readonly context: IngestKeyContext;
  readonly event: IngestKeyEvent;
}

/** Before the first rotation. */
export const NO_ROTATION: IngestKeyContext = { order: 0, current: 'first' };

/** Whether another host knows of a change that this one missed. Of two that know as much, all hosts take the same. */
export function isNews(own: IngestKeyContext, heard: IngestKeyContext): boolean {
  return heard.order > own.order || (heard.order === own.order && heard.current > own.current);
}

/** The key in use after an event. */
const keyAfter = ({ context, event }: Args): string =>
  event.type === 'RENEWED' ? event.to : event.type === 'HEARD' ? event.keys.current : context.current;

/** Stands before what changes the context. */
const store = {
  type: 'collector.store_shared_key',
  params: (args: Args) => ({ from: args.context.current, to: keyAfter(args) }),
} as const;

const renewed = { guard: 'renews', target: 'overlap', reenter: true, actions: [store, 'renew'] } as const;

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
    isNews: ({ context, event }) => event.type === 'HEARD' && isNews(context, event.keys),
    isNewsOfOverlap: ({ context, event }) =>
      event.type === 'HEARD' && event.keys.previous !== undefined && isNews(context, event.keys),
  },
  actions: {
    'collector.store_shared_key': effect<{ from: string; to: string }>(),
    renew: assign(({ context, event }) =>
      event.type === 'RENEWED' ? { order: event.order, current: event.to, previous: context.current } : {},
    ),
    retire: assign(({ context, event }) =>
      event.type === 'RETIRED' ? { order: event.order, previous: undefined, retired: context.previous } : {},
    ),
    hear: assign(({ event }) => {
      if (event.type !== 'HEARD') return {};
      const { order, current, previous, retired } = event.keys;
      return { order, current, previous, retired };
    }),
  },
}).createMachine({
  id: 'collector-ingest-key',
  context: NO_ROTATION,
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
  on: {
    HEARD: [
      { guard: 'isNewsOfOverlap', target: '.overlap', actions: [store, 'hear'] },
      { guard: 'isNews', target: '.one', actions: [store, 'hear'] },
    ],
  },
});
