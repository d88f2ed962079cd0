/** The texts about backups for people: alerts, answers to requests, and why a run failed. */
import type { Alert } from '../effect.ts';
import { type Args, type BackupsContext, usualSize } from './backups-rules.ts';

export interface Reply {
  /** The request that is answered; if absent, the one named by the record's correlation. */
  readonly to?: string;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const NOUN = { snapshot: 'snapshot', volume: 'copy of the volume' } as const;

const alert = (name: string, severity: Alert['severity'], text: (noun: string, args: Args) => string) =>
  ({
    type: 'alerts.raise',
    params: (args: Args): Alert => {
      const reason = failureReason(args);
      const { kind } = args.context;
      return {
        name: `memory.${name}`,
        severity,
        text: text(NOUN[kind], args),
        labels: { kind, ...(reason !== '' && { reason }) },
      };
    },
  }) as const;

export const alerts = {
  failed: alert('backup_failed', 'critical', (noun) => `A ${noun} of the memory store could not be made.`),
  pruneFailed: alert(
    'prune_failed',
    'warning',
    (noun) => `A new ${noun} of the memory store was made, but old ones could not be deleted.`,
  ),
  stale: alert(
    'backup_stale',
    'critical',
    (noun, { context }) => `The memory store has had no good ${noun} for ${context.staleMs / 3_600_000} h.`,
  ),
  missed: alert(
    'backup_missed',
    'warning',
    (noun) => `A ${noun} of the memory store was due and was not made.`,
  ),
  size: alert(
    'backup_size',
    'warning',
    (noun, { context }) =>
      `A ${noun} of the memory store has ${context.run?.made?.size} bytes, while ${usualSize(context.good, context)} are usual.`,
  ),
  deployment: alert(
    'deployment',
    'critical',
    (_, { event }) =>
      `Backups of the memory store fail or are about to: ${event.type === 'DEPLOYMENT_CHECKED' ? event.findings.join('; ') : ''}.`,
  ),
} as const;

/** Answers the request of the run; a scheduled run has none, so its answer is sent to nobody. */
const reply = (status: number, body: (context: BackupsContext) => Reply['body']) =>
  ({
    type: 'http.reply',
    params: ({ context }: Args): Reply => ({ ...recipient(context.run), status, body: body(context) }),
  }) as const;
export const replyDone = reply(200, ({ run, deleted, fault }) => ({ ...run?.made, deleted, fault }));
export const replyFailed = reply(503, ({ fault }) => ({ code: 'HF_MEMORY_BACKUP', reason: fault }));
export const replyBusy = {
  type: 'http.reply',
  params: ({ event, context: { run } }: Args): Reply => ({
    ...recipient(event),
    status: 409,
    body: { code: 'HF_MEMORY_BACKUP', reason: `one is under way since ${run?.at} (${run?.by})` },
  }),
} as const;

/** The store said that it made the backup, and does not list it. */
export function isNotListed({ context: { run }, event }: Args): boolean {
  const made = run?.made;
  if (event.type !== 'LISTED' || !made) return false;
  return !event.listed.some(({ name, size }) => name === made.name && size > 0);
}

/** Why the run failed; empty when the event is no failure. */
export function failureReason(args: Args): string {
  const { context, event } = args;
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'it was interrupted';
  if (event.type === 'NOTHING_TO_BACK_UP') return event.reason;
  return isNotListed(args) ? `${context.run?.made?.name} is not in the list, or is empty` : '';
}

function recipient(from: object | undefined): { readonly to?: string } {
  return from && 'request' in from && typeof from.request === 'string' ? { to: from.request } : {};
}
