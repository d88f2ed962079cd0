import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** A save after which paths of the config were gone that nobody had asked to remove. Paths only: values are secret. */
export interface DroppedPaths {
  /** When the difference was read (epoch ms). */
  readonly at: number;
  /** The ncid of the config that lacks them. */
  readonly ncid: string;
  /** Bounded; `count` is how many there are. */
  readonly paths: readonly string[];
  readonly count: number;
  /** Those of them that the policy wants a person to know of. */
  readonly alerted: readonly string[];
}

export interface SavesContext {
  /** The newest last. */
  readonly dropped: readonly DroppedPaths[];
}

export type SavesEvent = { type: 'DROPPED' } & DroppedPaths;

const KEPT = 20;

/** What saves of others have dropped from the router's config. */
export const saves = setup({
  types: { context: {} as SavesContext, events: {} as SavesEvent },
  guards: { alarming: ({ event }) => event.alerted.length > 0 },
  actions: {
    'alerts.raise': effect<Alert>(),
    remember: assign(({ context, event: { at, ncid, paths, count, alerted } }) => ({
      dropped: [...context.dropped, { at, ncid, paths, count, alerted }].slice(-KEPT),
    })),
  },
}).createMachine({
  id: 'reconciler-saves',
  context: { dropped: [] },
  initial: 'watching',
  states: {
    watching: {
      on: {
        DROPPED: [
          {
            guard: 'alarming',
            actions: ['remember', { type: 'alerts.raise', params: ({ event }) => alertOf(event) }],
          },
          { actions: 'remember' },
        ],
      },
    },
  },
});

function alertOf({ alerted, count, ncid }: SavesEvent): Alert {
  return {
    name: 'reconciler.paths_dropped',
    severity: 'warning',
    text: `A save of the router's config dropped ${alerted.join(', ')}${count > alerted.length ? ` (${count} paths in all)` : ''}; see \`holdfast router dropped\`.`,
    labels: { ncid },
  };
}
