import type {
  Ask,
  ConfigVersion,
  Job,
  Pending,
  TransactionContext,
  TransactionEvent,
} from './config-shapes.ts';

/** Why a request is not carried out: HTTP status, code of the error table, and the text that clients match. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}

const USED_KEPT = 64;
const NONE_TEXT = 'No ongoing config change transaction context, cannot commit or revert';

/** @returns a 400 answer */
export const refuse = (code: string, text: string): Refusal => ({ status: 400, code, text });

/** The answer to a request that must not be carried out now, with the texts of the documents; R3, R10. */
export function judge(context: TransactionContext, ask: Ask): Refusal | undefined {
  const { pending } = context;
  const id = ask.transID ?? '';
  if (pending) {
    if (ask.op === 'save' || ask.op === 'reapply')
      return refuse(
        'HF_ROUTER_TRANSACTION_PENDING',
        'A config change transaction context is in progress, reject non-transaction change request',
      );
    if (id !== pending.transID)
      return refuse('HF_ROUTER_TRANSACTION_OTHER', `transID ${id} does not match current transaction ID`);
    if (pending.expired) return refuse('HF_ROUTER_TRANSACTION_NONE', NONE_TEXT);
  } else if (ask.op === 'commit' || ask.op === 'revert') {
    return refuse('HF_ROUTER_TRANSACTION_NONE', NONE_TEXT);
  } else if (ask.op === 'append' && context.used.includes(id)) {
    return refuse(
      'HF_ROUTER_TRANSACTION_USED',
      `transID ${id} has been used, a transaction needs a fresh one`,
    );
  }
  return ask.op === 'save' || ask.op === 'append' ? judgeNcid(context, ask) : undefined;
}

function judgeNcid(context: TransactionContext, ask: Ask): Refusal | undefined {
  if (ask.ignoreNcid) return undefined;
  if (ask.ncid === undefined) return refuse('HF_ROUTER_NCID_REQUIRED', 'ncid is required');
  if (ask.ncid !== context.active.ncid) return refuse('HF_ROUTER_NCID_MISMATCH', 'ncid not match');
  return undefined;
}

/** The request that an event brings, in a list to be appended to the queue. */
export function askOf(event: TransactionEvent): Ask[] {
  if (event.type === 'APPLY_CURRENT') {
    const { type: _, ...rest } = event;
    return [{ op: 'reapply', ...rest }];
  }
  if (event.type !== 'SET') return [];
  const { type: _, op, changed: __, ...rest } = event;
  return [{ op: op ?? 'save', ...rest }];
}

/** What carrying out an accepted request means. */
export function jobOf(context: TransactionContext, ask: Ask): Job {
  const { active, pending } = context;
  const before = active;
  if (ask.op === 'reapply') return { op: 'reapply', before, fingerprint: active.fingerprint, ask };
  if (ask.op === 'revert' && pending) return { ...revertOf(active, pending), ask };
  if (ask.op === 'commit' && pending)
    return { op: 'commit', before, fingerprint: active.fingerprint, transID: pending.transID, ask };
  const op = ask.op === 'append' ? 'append' : 'save';
  const transID = ask.transID !== undefined && op === 'append' ? { transID: ask.transID } : {};
  return { op, before, fingerprint: ask.fingerprint ?? active.fingerprint, ...transID, ask };
}

/** Back to what was before the transaction. */
export function revertOf(before: ConfigVersion, { previous, transID }: Pending): Job {
  return { op: 'revert', before, fingerprint: previous.fingerprint, transID };
}

/** What the machine knows once a job stands. */
export function settled(context: TransactionContext, version: ConfigVersion): Partial<TransactionContext> {
  const { job, pending } = context;
  const active = { ncid: version.ncid, fingerprint: version.fingerprint };
  const done = { active, job: undefined, failure: undefined };
  if (job?.op === 'append' && job.transID !== undefined) {
    if (pending?.expired) return { ...done, late: job.ask };
    const { transID, before, ask } = job;
    const opened = { transID, who: ask?.who ?? '', previous: before };
    if (!pending) return { ...done, pending: opened };
    const { leftMs: _, ...ours } = pending; // the window that begins now is our own
    return { ...done, pending: { ...ours, renewed: true } };
  }
  if (job?.op === 'commit' && pending) return { ...done, ...ended(context, 'committed') };
  if (job?.op === 'revert' && pending) return { ...done, ...ended(context, 'reverted') };
  return done;
}

/** What an event that tells of a shared store changes of the transaction: another router may have opened or ended it. */
export function shared(context: TransactionContext, event: TransactionEvent): Partial<TransactionContext> {
  if ((event.type !== 'LOADED' && event.type !== 'OVERTAKEN') || !event.shared) return {};
  const { pending } = context;
  const { transaction, fingerprint } = event;
  if (!transaction) {
    if (!pending) return { shared: true };
    const isBack = fingerprint === pending.previous.fingerprint;
    return { shared: true, ...ended(context, isBack ? 'reverted' : 'committed') };
  }
  if (pending?.transID !== transaction.transID) return { shared: true, pending: transaction };
  if (pending.leftMs === undefined || transaction.leftMs <= 0) return { shared: true };
  const { expired: _, ...open } = pending;
  return { shared: true, pending: { ...open, leftMs: transaction.leftMs, renewed: true } };
}

/** The transaction is over; its transID must not come again. */
export function ended(
  context: TransactionContext,
  outcome: 'committed' | 'reverted',
): Partial<TransactionContext> {
  const transID = context.pending?.transID ?? '';
  const used = [...context.used, transID].slice(-USED_KEPT);
  return { pending: undefined, used, last: { outcome, transID } };
}
