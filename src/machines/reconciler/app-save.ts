import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** One drill: a leg is saved as the phone app saves it, renamed and without its address. */
export interface AppSaveRun {
  /** When it began (epoch ms); names the run, too. */
  readonly at: number;
  readonly by: string;
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  /** How long the address may take to return after each save, milliseconds. */
  readonly waitMs: number;
}

export interface AppSaveContext {
  readonly run?: AppSaveRun | undefined;
  /** What has happened, each with its time (epoch ms). */
  readonly steps: readonly { readonly at: number; readonly what: string }[];
  /** Why it ends without success. */
  readonly reason?: string | undefined;
  /** Tries to put the config back. */
  readonly tries: number;
}

export type AppSaveEvent =
  | ({ type: 'BEGIN' } & AppSaveRun)
  | { type: 'ABORT'; at: number; by: string }
  | { type: 'SAVED'; run: number; at: number; name: string }
  /** `sent`: it may have been applied. */
  | { type: 'NOT_SAVED'; run: number; at: number; reason: string; sent: boolean }
  | { type: 'RETURNED'; run: number; at: number; configMs: number; linkMs?: number }
  | { type: 'NOT_RETURNED'; run: number; at: number; reason: string }
  | { type: 'RESTORED'; run: number; at: number; changed: boolean }
  | { type: 'NOT_RESTORED'; run: number; at: number; reason: string }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string }
  | { type: 'effect.done'; effect: string };

/** What an effect of the drill answers. */
export type AppSaveOutcome = Extract<AppSaveEvent, { run: number }>;

interface Args {
  readonly context: AppSaveContext;
  readonly event: AppSaveEvent;
}

/** The leg of the run, as the effects need it. */
export type AppSaveLeg = { run: number; intf: string; address: string; waitMs: number };
export type AppSaveRequest = AppSaveLeg & { to: 'renamed' | 'original' };

/** Tries to put the config back, and the pause between two of them. */
const RESTORE_TRIES = 10;
const RESTORE_PAUSE_MS = 3_000;

const legOf = ({ context: { run } }: Args): AppSaveLeg => ({
  run: run?.at ?? 0,
  intf: run?.intf ?? '',
  address: run?.address ?? '',
  waitMs: run?.waitMs ?? 0,
});

const failing = {
  'effect.failed': { guard: 'ofWatch', target: 'restoring', actions: 'fail' },
  'effect.lost': { guard: 'ofWatch', target: 'restoring', actions: 'fail' },
  ABORT: { target: 'restoring', actions: 'fail' },
} as const;

/** An answer may still come: what was sent is put back only after it. */
const saving = {
  NOT_SAVED: [
    { guard: 'unsent', target: 'failed', actions: 'fail' },
    { guard: 'ofRun', target: 'restoring', actions: 'fail' },
  ],
  'effect.failed': { guard: 'ofSave', target: 'restoring', actions: 'fail' },
  'effect.lost': { guard: 'ofSave', target: 'restoring', actions: 'fail' },
  ABORT: { actions: 'fail' },
} as const;

/**
 * The heal drill (R26): the documented app save, a rename that drops `ipv6`, and the rename back. Each time the address
 * must return; whatever else happens, the config is put back.
 */
export const appSave = setup({
  types: { context: {} as AppSaveContext, events: {} as AppSaveEvent },
  delays: { pause: RESTORE_PAUSE_MS },
  guards: {
    ofRun: ({ context, event }) => 'run' in event && event.run === context.run?.at,
    unsent: ({ context, event }) =>
      event.type === 'NOT_SAVED' && event.run === context.run?.at && !event.sent,
    stopped: ({ context, event }) =>
      context.reason !== undefined && 'run' in event && event.run === context.run?.at,
    // Events `effect.failed` and `effect.lost` come from every effect.
    ofSave: ({ event }) => 'effect' in event && event.effect === 'reconciler.drill_save',
    ofWatch: ({ event }) => 'effect' in event && event.effect === 'reconciler.drill_watch',
    ofRestore: ({ event }) => 'effect' in event && event.effect === 'reconciler.drill_restore',
    mayRetry: ({ context }) => context.tries < RESTORE_TRIES,
  },
  actions: {
    'reconciler.drill_save': effect<AppSaveRequest>(),
    'reconciler.drill_watch': effect<AppSaveLeg>(),
    'reconciler.drill_restore': effect<AppSaveLeg>(),
    'alerts.raise': effect<Alert>(),
    begin: assign(({ event }) => {
      if (event.type !== 'BEGIN') return {};
      const { type: _, ...run } = event;
      return { run, steps: [], reason: undefined, tries: 0 };
    }),
    step: assign(({ context, event }) => {
      const what = stepText(event);
      if (what === undefined || !('at' in event)) return {};
      return { steps: [...context.steps, { at: event.at, what }] };
    }),
    fail: assign(({ context, event }) => {
      const reason = reasonOf(event);
      const at = 'at' in event ? event.at : undefined;
      const steps = at === undefined ? context.steps : [...context.steps, { at, what: reason }];
      return { steps, reason: context.reason ?? reason };
    }),
    countTry: assign(({ context }) => ({ tries: context.tries + 1 })),
  },
}).createMachine({
  id: 'reconciler-app-save',
  context: { steps: [], tries: 0 },
  initial: 'idle',
  states: {
    idle: { on: { BEGIN: { target: 'renaming', actions: 'begin' } } },

    renaming: {
      entry: {
        type: 'reconciler.drill_save',
        params: (args) => ({ ...legOf(args), to: 'renamed' as const }),
      },
      on: {
        SAVED: [
          { guard: 'stopped', target: 'restoring', actions: 'step' },
          { guard: 'ofRun', target: 'renamed', actions: 'step' },
        ],
        ...saving,
      },
    },

    renamed: {
      entry: { type: 'reconciler.drill_watch', params: legOf },
      on: {
        RETURNED: { guard: 'ofRun', target: 'renamingBack', actions: 'step' },
        NOT_RETURNED: { guard: 'ofRun', target: 'restoring', actions: 'fail' },
        ...failing,
      },
    },

    renamingBack: {
      entry: {
        type: 'reconciler.drill_save',
        params: (args) => ({ ...legOf(args), to: 'original' as const }),
      },
      on: {
        SAVED: [
          { guard: 'stopped', target: 'restoring', actions: 'step' },
          { guard: 'ofRun', target: 'renamedBack', actions: 'step' },
        ],
        ...saving,
        NOT_SAVED: { guard: 'ofRun', target: 'restoring', actions: 'fail' },
      },
    },

    renamedBack: {
      entry: { type: 'reconciler.drill_watch', params: legOf },
      on: {
        RETURNED: { guard: 'ofRun', target: 'passed', actions: 'step' },
        NOT_RETURNED: { guard: 'ofRun', target: 'restoring', actions: 'fail' },
        ...failing,
      },
    },

    restoring: {
      entry: ['countTry', { type: 'reconciler.drill_restore', params: legOf }],
      on: {
        RESTORED: { guard: 'ofRun', target: 'failed', actions: 'step' },
        NOT_RESTORED: { guard: 'ofRun', target: 'notRestored', actions: 'step' },
        'effect.failed': { guard: 'ofRestore', target: 'notRestored' },
        'effect.lost': { guard: 'ofRestore', target: 'notRestored' },
      },
    },

    /** Another writer was faster, or the router gave no answer. */
    notRestored: {
      always: {
        guard: ({ context }) => context.tries >= RESTORE_TRIES,
        target: 'failed',
        actions: { type: 'alerts.raise', params: ({ context }) => leftBehind(context) },
      },
      after: { pause: { guard: 'mayRetry', target: 'restoring' } },
    },

    passed: { on: { BEGIN: { target: 'renaming', actions: 'begin' } } },
    failed: { on: { BEGIN: { target: 'renaming', actions: 'begin' } } },
  },
});

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** What an event means for a person who watches the drill. */
function stepText(event: AppSaveEvent): string | undefined {
  switch (event.type) {
    case 'SAVED':
      return `saved as the app does: named ${event.name}, without ipv6`;
    case 'RETURNED': {
      const link = event.linkMs === undefined ? '' : `, on the link after ${seconds(event.linkMs)}`;
      return `the address is back in the config after ${seconds(event.configMs)}${link}`;
    }
    case 'RESTORED':
      return event.changed ? 'the config is put back' : 'the config needed nothing put back';
    case 'NOT_RESTORED':
      return `the config could not be put back: ${event.reason}`;
    default:
      return undefined;
  }
}

function reasonOf(event: AppSaveEvent): string {
  switch (event.type) {
    case 'ABORT':
      return `${event.by} stopped the drill`;
    case 'NOT_SAVED':
    case 'NOT_RETURNED':
      return event.reason;
    case 'effect.failed':
      return event.message;
    case 'effect.lost':
      return 'the process ended during the drill';
    default:
      return event.type;
  }
}

function leftBehind({ run, reason }: AppSaveContext): Alert {
  const { intf = '', label = '', address = '' } = run ?? {};
  return {
    name: 'reconciler.drill.not_restored',
    severity: 'critical',
    text: `A drill left ${label} (${intf}) behind: ${reason}. Check its name and ${address} in the router's config.`,
    labels: { intf, label, address },
  };
}
