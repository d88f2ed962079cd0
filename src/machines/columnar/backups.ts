/**
 * The backups of the embedded columnar database (O7): which are good, what is wrong, and what the newest drill has found.
 * A reducer with alerts; the plugin makes backups and drills, and sends what came of them. Times are epoch milliseconds.
 */
import { and, assign, setup } from 'xstate';
import { isStale } from '../backup-age.ts';
import { type ClockSet, moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';

/** What one table holds, in a form that no order of rows changes. */
export interface TableDigest {
  readonly table: string;
  /** Decimal text, as are the two hashes. */
  readonly rows: string;
  /** Sum of the rows' hashes. */
  readonly sum: string;
  /** Their exclusive or. */
  readonly xor: string;
}

export interface ColumnarBackup {
  readonly name: string;
  readonly at: number;
  /** Bytes. */
  readonly size: number;
  readonly sha256: string;
  readonly tables: readonly TableDigest[];
}

export interface ColumnarDrill {
  readonly at: number;
  readonly name: string;
  readonly proven: boolean;
  /** What differs; empty when it is proven. */
  readonly reasons: readonly string[];
}

export interface ColumnarBackupsContext {
  /** No good backup for longer than this is an alert, milliseconds. */
  readonly staleMs: number;
  /** Newest first. */
  readonly good: readonly ColumnarBackup[];
  /** Since when backups are looked after: nothing is stale before one could have been made. */
  readonly since?: number;
  /** Why the newest run failed. */
  readonly fault?: string | undefined;
  readonly isStale: boolean;
  readonly drill?: ColumnarDrill;
}

export type ColumnarBackupsEvent =
  | { readonly type: 'MADE'; readonly backup: ColumnarBackup }
  | { readonly type: 'FAILED'; readonly at: number; readonly reason: string }
  /** Files beyond the retention, or that somebody else deleted. */
  | { readonly type: 'GONE'; readonly names: readonly string[] }
  | ({ readonly type: 'DRILLED' } & ColumnarDrill)
  | { readonly type: 'CHECKED'; readonly at: number }
  | ClockSet;

interface Args {
  readonly context: ColumnarBackupsContext;
  readonly event: ColumnarBackupsEvent;
}

const NAMES = {
  failed: 'columnar.backup_failed',
  stale: 'columnar.backup_stale',
  unproven: 'columnar.backup_not_proven',
} as const;

const alert =
  (name: keyof typeof NAMES, state: 'firing' | 'resolved', text: (args: Args) => string) =>
  (args: Args): Alert => ({
    name: NAMES[name],
    severity: state === 'resolved' ? 'info' : name === 'unproven' ? 'critical' : 'warning',
    text: text(args),
    labels: { state },
  });

const madeAgain = (name: keyof typeof NAMES) =>
  alert(name, 'resolved', () => 'A backup of the columnar database was made again.');

const hours = ({ staleMs }: ColumnarBackupsContext): number => Math.round(staleMs / 3_600_000);

export const columnarBackups = setup({
  types: {} as {
    context: ColumnarBackupsContext;
    events: ColumnarBackupsEvent;
    input: { readonly staleMs: number };
  },
  guards: {
    isFirstFault: ({ context }) => context.fault === undefined,
    hasFault: ({ context }) => context.fault !== undefined,
    becomesStale: ({ context, event }) =>
      event.type === 'CHECKED' && !context.isStale && isStale(context, event.at),
    wasStale: ({ context }) => context.isStale,
    isUnproven: ({ event }) => event.type === 'DRILLED' && !event.proven,
    becomesProven: ({ context, event }) =>
      event.type === 'DRILLED' && event.proven && context.drill?.proven === false,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    note: assign(({ context, event }) => noted(context, event)),
  },
}).createMachine({
  id: 'columnar-backups',
  context: ({ input: { staleMs } }) => ({ staleMs, good: [], isStale: false }),
  initial: 'watched',
  on: {
    MADE: [
      {
        guard: and(['hasFault', 'wasStale']),
        actions: [
          { type: 'alerts.raise', params: madeAgain('failed') },
          { type: 'alerts.raise', params: madeAgain('stale') },
          'note',
        ],
      },
      { guard: 'hasFault', actions: [{ type: 'alerts.raise', params: madeAgain('failed') }, 'note'] },
      { guard: 'wasStale', actions: [{ type: 'alerts.raise', params: madeAgain('stale') }, 'note'] },
      { actions: 'note' },
    ],
    FAILED: [
      {
        guard: 'isFirstFault',
        actions: [
          {
            type: 'alerts.raise',
            params: alert('failed', 'firing', ({ event }) =>
              event.type === 'FAILED'
                ? `No backup of the columnar database could be made: ${event.reason}.`
                : '',
            ),
          },
          'note',
        ],
      },
      { actions: 'note' },
    ],
    GONE: { actions: 'note' },
    CLOCK_SET: { actions: 'note' },
    DRILLED: [
      {
        guard: 'isUnproven',
        actions: [
          {
            type: 'alerts.raise',
            params: alert('unproven', 'firing', ({ event }) =>
              event.type === 'DRILLED'
                ? `The backup ${event.name} of the columnar database is not proven: ${event.reasons.slice(0, 3).join('; ')}.`
                : '',
            ),
          },
          'note',
        ],
      },
      {
        guard: 'becomesProven',
        actions: [
          {
            type: 'alerts.raise',
            params: alert(
              'unproven',
              'resolved',
              () => 'A drill has proven a backup of the columnar database.',
            ),
          },
          'note',
        ],
      },
      { actions: 'note' },
    ],
    CHECKED: [
      {
        guard: 'becomesStale',
        actions: [
          {
            type: 'alerts.raise',
            params: alert(
              'stale',
              'firing',
              ({ context }) => `There was no good backup of the columnar database for ${hours(context)} h.`,
            ),
          },
          'note',
        ],
      },
      { actions: 'note' },
    ],
  },
  states: { watched: {} },
});

function noted(
  context: ColumnarBackupsContext,
  event: ColumnarBackupsEvent,
): Partial<ColumnarBackupsContext> {
  switch (event.type) {
    case 'MADE':
      return { good: [event.backup, ...context.good], fault: undefined, isStale: false };
    case 'CLOCK_SET':
      return {
        ...moved(context, event.byMs, 'since'),
        good: context.good.map((one) => ({ ...one, ...moved(one, event.byMs, 'at') })),
        ...(context.drill && { drill: { ...context.drill, ...moved(context.drill, event.byMs, 'at') } }),
      };
    case 'FAILED':
      return { fault: event.reason };
    case 'GONE':
      return { good: context.good.filter(({ name }) => !event.names.includes(name)) };
    case 'DRILLED': {
      const { type: _, ...drill } = event;
      return { drill };
    }
    case 'CHECKED':
      return { since: context.since ?? event.at, isStale: isStale(context, event.at) };
  }
}
