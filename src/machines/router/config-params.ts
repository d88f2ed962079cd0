import type { Alert } from '../effect.ts';
import { askOf, judge, type Refusal, refuse } from './config-judge.ts';
import type {
  ApplyParams,
  ConfigVersion,
  PublishParams,
  Reach,
  ReplyParams,
  TransactionContext,
  TransactionEvent,
} from './config-shapes.ts';

/** No config: the store has not been read yet. */
export const UNKNOWN: ConfigVersion = { ncid: '', fingerprint: '' };
const BUSY_TEXT = 'too many config changes are waiting, try again';

/** What guards and parameters are computed from. */
export type Args = { readonly context: TransactionContext; readonly event: TransactionEvent };

/** The config an event tells of. */
export const versionOf = (event: TransactionEvent): ConfigVersion =>
  'ncid' in event ? (event as ConfigVersion) : UNKNOWN;

const failed = (to: string, refusal: Refusal): ReplyParams => ({
  to,
  status: refusal.status,
  body: { errors: [refusal.text], code: refusal.code },
});

const succeeded = (to: string, ncid: string): ReplyParams => ({
  to,
  status: 200,
  body: { errors: [], ncid },
});

// The replies, as parameters of `http.reply`.

export const busy = ({ event }: Args): ReplyParams => ({
  ...failed(askOf(event)[0]?.request ?? '', { status: 503, code: 'HF_ROUTER_BUSY', text: BUSY_TEXT }),
  headers: { 'retry-after': '1' },
});

export const refusal = ({ context }: Args): ReplyParams => {
  const [ask] = context.queue;
  const verdict = ask && judge(context, ask);
  return failed(ask?.request ?? '', verdict ?? refuse('HF_INTERNAL', ''));
};

export const committed = ({ context }: Args): ReplyParams =>
  succeeded(context.queue[0]?.request ?? '', context.active.ncid);

export const answer = ({ context, event }: Args): ReplyParams => {
  const to = context.job?.ask?.request ?? '';
  if (context.job?.late) {
    const text = 'the transaction window passed while this change was being applied, it has been reverted';
    return failed(to, refuse('HF_ROUTER_TRANSACTION_NONE', text));
  }
  return succeeded(to, versionOf(event).ncid);
};

export const failure = ({ context, event }: Args): ReplyParams => {
  const to = context.job?.ask?.request ?? '';
  if (event.type === 'OVERTAKEN') return failed(to, refuse('HF_ROUTER_NCID_MISMATCH', 'ncid not match'));
  if (event.type === 'APPLY_FAILED')
    return { to, status: event.status, body: { errors: event.errors, code: event.code } };
  return failed(to, { status: 500, code: 'HF_ROUTER_APPLY_FAILED', text: context.failure ?? 'apply failed' });
};

// The other effects' parameters.

export const apply = ({ context }: Args): ApplyParams => {
  const { op, before, fingerprint, transID, ask, late } = context.job ?? {
    op: 'reapply' as const,
    before: context.active,
    fingerprint: context.active.fingerprint,
  };
  return {
    op,
    expected: before.ncid,
    before: before.fingerprint,
    fingerprint,
    ...(transID !== undefined && { transID }),
    // Nobody asks for the revert of a window that ran out.
    who: ask && !late ? ask.who : 'holdfast',
  };
};

const reachOf = (event: TransactionEvent): Reach => {
  if (event.type !== 'APPLIED' && event.type !== 'LOADED') return { reapplied: [] };
  const { reapplied = [], rewritten, apc } = event;
  return { reapplied, ...(rewritten && { rewritten }), ...(apc && { apc }) };
};

export const publish = ({ context, event }: Args): PublishParams => ({
  ncid: versionOf(event).ncid,
  ...reachOf(event),
  ...(context.job?.transID !== undefined && { transID: context.job.transID }),
  ...(context.job?.ask && { story: context.job.ask.story ?? context.job.ask.request }),
});

export const bypassed = ({ context }: Args): Alert => {
  const [ask] = context.queue;
  return {
    name: 'router.ncid_bypassed',
    severity: 'warning',
    text: 'A client wrote the router config with ignoreNcid: what was saved in between is overwritten.',
    labels: { who: ask?.who ?? '', posted: ask?.ncid ?? 'none', current: context.active.ncid },
  };
};

export const storeChanged = ({ context, event }: Args): Alert => ({
  name: 'router.store_changed',
  severity: 'warning',
  text: 'The router config was changed in its store, not through the API. What the store holds is taken.',
  labels: { expected: context.active.ncid, found: versionOf(event).ncid },
});

export const revertFailed = ({ context, event }: Args): Alert => {
  const reason = event.type === 'APPLY_FAILED' ? event.errors.join('; ') : (context.failure ?? 'unknown');
  return {
    name: 'router.revert_failed',
    severity: 'critical',
    text: 'An uncommitted change of the router config could not be reverted; it is tried again.',
    labels: { transID: context.pending?.transID ?? '', reason },
  };
};
