/** The rules of the chart in `config.ts`: which request is refused, what a request applies, and how it is answered. */
import type { Alert } from '../effect.ts';
import type {
  ApplyParams,
  ConfigContext,
  ConfigEvent,
  ConfigInput,
  ConfigVersion,
  Job,
  PublishParams,
  ReplyParams,
  VerifyParams,
  WriteRequest,
} from './config-shapes.ts';

export type Args = { readonly context: ConfigContext; readonly event: ConfigEvent };

/** The active config before the store has been read. */
export const UNKNOWN: ConfigVersion = { ncid: '', fingerprint: '' };

const DEFAULTS: Required<ConfigInput> = { windowMs: 120_000, retryMs: 10_000, queueLimit: 64 };
/** Ended transIDs that are remembered: each must be fresh. */
const USED_KEPT = 64;
/** Singletons whose newest fence is remembered: those whose holders came last. */
const FENCES_KEPT = 16;

const NONE_TEXT = 'No ongoing config change transaction context, cannot commit or revert';
const PENDING_TEXT =
  'A config change transaction context is in progress, reject non-transaction change request';
const LATE_TEXT = 'the transaction window passed while this change was being applied, it has been reverted';

/** The given settings; those of `fallback` where one is missing or is no positive number. */
export function withSettings(
  { windowMs, retryMs, queueLimit }: ConfigInput,
  fallback: Required<ConfigInput> = DEFAULTS,
): Required<ConfigInput> {
  return {
    windowMs: isPositive(windowMs) ? windowMs : fallback.windowMs,
    retryMs: isPositive(retryMs) ? retryMs : fallback.retryMs,
    queueLimit: isPositive(queueLimit) ? queueLimit : fallback.queueLimit,
  };
}

const isPositive = (value: number | undefined): value is number =>
  Number.isFinite(value) && Number(value) > 0;

/** The config that an event names. */
export const versionOf = (event: ConfigEvent): ConfigVersion =>
  'ncid' in event && 'fingerprint' in event && event.type !== 'SET'
    ? { ncid: event.ncid, fingerprint: event.fingerprint }
    : UNKNOWN;

/** The request that an event brings, in a list to be appended to the queue. */
export function requestsOf(event: ConfigEvent): WriteRequest[] {
  if (event.type === 'APPLY_CURRENT') {
    const { type: _, callers: __, ...rest } = event;
    return [{ op: 'reapply', ...rest }];
  }
  if (event.type !== 'SET') return [];
  const { type: _, op, changed: __, ...rest } = event;
  return [{ op: op ?? 'save', ...rest }];
}

/** The job that carries out a request. */
export function jobOf({ active, pending }: ConfigContext, write: WriteRequest): Job {
  const { op, request, who, correlation = request } = write;
  const job = { op, before: active, fingerprint: active.fingerprint, who, request, correlation };
  const transID = write.transID ?? '';
  switch (op) {
    case 'save':
      return { ...job, fingerprint: write.fingerprint ?? active.fingerprint };
    case 'append':
      return { ...job, fingerprint: write.fingerprint ?? active.fingerprint, transID };
    case 'revert':
      return { ...job, fingerprint: pending?.previous.fingerprint ?? active.fingerprint, transID };
    case 'commit':
      return { ...job, transID };
    case 'reapply':
      return job;
  }
}

/** The job that restores the config before the transaction. It answers the client of an append that the window cut off. */
export function revertOf({ active, pending, job }: ConfigContext): Job | undefined {
  if (!pending) return undefined;
  const { previous, transID } = pending;
  const revert = { op: 'revert', before: active, fingerprint: previous.fingerprint, transID } as const;
  if (!job) return { ...revert, who: 'holdfast', request: '' };
  const { request, correlation } = job;
  return {
    ...revert,
    who: 'holdfast',
    request,
    ...(correlation !== undefined && { correlation }),
    late: true,
  };
}

/** The transaction is over; its transID must not come again. */
export function withEnded(
  { used, pending }: ConfigContext,
  outcome: 'committed' | 'reverted',
): Partial<ConfigContext> {
  const transID = pending?.transID ?? '';
  return { pending: undefined, used: [...used, transID].slice(-USED_KEPT), last: { outcome, transID } };
}

// Refusals, with the texts of the documents (R3, R10).

/** Why a request is not carried out: HTTP status, error code, and the text that clients compare. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}

/** @returns undefined for a request that may be carried out */
export type RefusalOf = (context: ConfigContext, request: WriteRequest) => Refusal | undefined;

const refusal = (code: string, text: string): Refusal => ({ status: 400, code, text });

/** Why the first request of the queue is not carried out. */
export function nextRefusal(context: ConfigContext, refusalOf: RefusalOf): Refusal | undefined {
  const [request] = context.queue;
  return request && (fenceRefusal(context, request) ?? refusalOf(context, request));
}

/** Its writer believes that it still holds a lease which another host has by now, and that one has written. */
function fenceRefusal({ fences = {} }: ConfigContext, { fence }: WriteRequest): Refusal | undefined {
  if (!fence || fence.number >= (fences[fence.singleton] ?? 0)) return undefined;
  const text = `a later holder of ${fence.singleton} has written here, so this write is refused`;
  return { status: 409, code: 'HF_ROUTER_FENCED', text };
}

/** With the fence of a request, also of one that is refused for another reason. */
export function withFence({ fences = {} }: ConfigContext, event: ConfigEvent): Pick<ConfigContext, 'fences'> {
  const fence = 'fence' in event ? event.fence : undefined;
  if (!fence || fence.number <= (fences[fence.singleton] ?? 0)) return {};
  const all = Object.entries({ ...fences, [fence.singleton]: fence.number });
  const kept = all.sort(([, one], [, other]) => other - one).slice(0, FENCES_KEPT);
  return { fences: Object.fromEntries(kept) };
}

export const whileFree: RefusalOf = (context, request) => {
  const { op, transID = '' } = request;
  if (op === 'reapply') return undefined;
  if (op === 'commit' || op === 'revert') return refusal('HF_ROUTER_TRANSACTION_NONE', NONE_TEXT);
  if (op === 'append' && context.used.includes(transID)) {
    const text = `transID ${transID} has been used, a transaction needs a fresh one`;
    return refusal('HF_ROUTER_TRANSACTION_USED', text);
  }
  return ncidRefusal(context, request);
};

export const whilePending: RefusalOf = (context, request) => {
  const foreign = notOfTransaction(context, request);
  if (foreign) return foreign;
  return request.op === 'append' ? ncidRefusal(context, request) : undefined;
};

/** The window is over, so its transaction can be neither continued nor ended. */
export const whileReverting: RefusalOf = (context, request) =>
  notOfTransaction(context, request) ?? refusal('HF_ROUTER_TRANSACTION_NONE', NONE_TEXT);

function notOfTransaction({ pending }: ConfigContext, { op, transID = '' }: WriteRequest) {
  if (op === 'save' || op === 'reapply') return refusal('HF_ROUTER_TRANSACTION_PENDING', PENDING_TEXT);
  if (transID === pending?.transID) return undefined;
  return refusal('HF_ROUTER_TRANSACTION_OTHER', `transID ${transID} does not match current transaction ID`);
}

function ncidRefusal(
  { active }: ConfigContext,
  { ncid, ignoreNcid, current = active.ncid }: WriteRequest,
): Refusal | undefined {
  if (ignoreNcid) return undefined;
  if (ncid === undefined) return refusal('HF_ROUTER_NCID_REQUIRED', 'ncid is required');
  // No ncid comes again (R5), so a request that was too late for the store when it came stays too late.
  if (ncid === active.ncid && ncid === current) return undefined;
  return refusal('HF_ROUTER_NCID_MISMATCH', 'ncid not match');
}

/** Whether the store held another config already when the request came. Such a request bears no config, and is refused. */
export const isTooLate = ({ event }: Args): boolean =>
  event.type === 'SET' &&
  event.ignoreNcid !== true &&
  event.current !== undefined &&
  event.current !== event.ncid;

// Parameters of `http.reply`.

const failed = (to: string, { status, code, text }: Refusal): ReplyParams => ({
  to,
  status,
  body: { errors: [text], code },
});

const succeeded = (to: string, ncid: string): ReplyParams => ({
  to,
  status: 200,
  body: { errors: [], ncid },
});

export const fullReply = ({ event }: Args): ReplyParams => {
  const text = 'too many config changes are waiting, try again';
  const to = 'request' in event ? event.request : '';
  return { ...failed(to, { status: 503, code: 'HF_ROUTER_BUSY', text }), headers: { 'retry-after': '1' } };
};

export const refusalReply = (context: ConfigContext, refusalOf: RefusalOf): ReplyParams =>
  failed(
    context.queue[0]?.request ?? '',
    nextRefusal(context, refusalOf) ?? refusal('HF_INTERNAL', 'the request is not refused'),
  );

/** To a request that came too late: it needs no turn in the queue. */
export const tooLateReply = ({ context, event }: Args): ReplyParams =>
  refusalReply({ ...context, queue: requestsOf(event) }, whileFree);

export const committedReply = ({ context }: Args): ReplyParams =>
  succeeded(context.queue[0]?.request ?? '', context.active.ncid);

export const doneReply = ({ context: { job }, event }: Args): ReplyParams => {
  const to = job?.request ?? '';
  return job?.late
    ? failed(to, refusal('HF_ROUTER_TRANSACTION_NONE', LATE_TEXT))
    : succeeded(to, versionOf(event).ncid);
};

export const failedReply = ({ context: { job }, event }: Args): ReplyParams => {
  const to = job?.request ?? '';
  if (event.type === 'APPLY_FAILED')
    return { to, status: event.status, body: { errors: event.errors, code: event.code } };
  return failed(to, refusal('HF_ROUTER_NCID_MISMATCH', 'ncid not match'));
};

// Parameters of the other effects.

export const applyParams = ({ context }: Args): ApplyParams => {
  const { op, before, fingerprint, transID, who } = context.job ?? nothing(context);
  return {
    op,
    expected: before.ncid,
    before: before.fingerprint,
    fingerprint,
    ...(transID !== undefined && { transID }),
    who,
  };
};

export const verifyParams = (args: Args): VerifyParams => ({
  ...applyParams(args),
  fault: args.context.job?.fault ?? '',
});

const nothing = ({ active }: ConfigContext): Job => ({
  op: 'reapply',
  before: active,
  fingerprint: active.fingerprint,
  who: 'holdfast',
  request: '',
});

export const publishParams = ({ context: { job }, event }: Args): PublishParams => {
  const { reapplied = [], rewritten, apc, apcOnly } = event.type === 'APPLIED' ? event : {};
  return {
    ncid: versionOf(event).ncid,
    reapplied,
    ...(rewritten && { rewritten }),
    ...(apc && { apc }),
    ...(apcOnly && { apcOnly }),
    ...(job?.transID !== undefined && { transID: job.transID }),
    ...(job?.correlation !== undefined && { correlation: job.correlation }),
  };
};

export const bypassAlert = ({ context: { queue, active } }: Args): Alert => ({
  name: 'router.ncid_bypassed',
  severity: 'warning',
  text: 'A client wrote the router config with ignoreNcid, so what was saved in between is overwritten.',
  labels: { who: queue[0]?.who ?? '', posted: queue[0]?.ncid ?? 'none', current: active.ncid },
});

export const storeChangedAlert = ({ context, event }: Args): Alert => ({
  name: 'router.store_changed',
  severity: 'warning',
  text: 'The router config was changed in its store and not through the API. The config in the store is now the active one.',
  labels: { expected: context.active.ncid, found: versionOf(event).ncid },
});

export const revertFailedAlert = ({ context, event }: Args): Alert => ({
  name: 'router.revert_failed',
  severity: 'critical',
  text: 'An uncommitted change of the router config could not be reverted. The revert is tried again.',
  labels: {
    transID: context.pending?.transID ?? '',
    reason: event.type === 'APPLY_FAILED' ? event.errors.join('; ') : 'unknown',
  },
});
