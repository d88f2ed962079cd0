import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { askOf, ended, jobOf, judge, revertOf, settled, shared } from './config-judge.ts';
import * as params from './config-params.ts';
import { type Args, UNKNOWN, versionOf } from './config-params.ts';
import type {
  ApplyParams,
  PublishParams,
  ReplyParams,
  TransactionContext,
  TransactionEvent,
  TransactionInput,
} from './config-shapes.ts';

type Settings = Required<TransactionInput>;
const DEFAULTS: Settings = { windowMs: 120_000, retryMs: 10_000, queueLimit: 64 };

/** The given settings, and the known ones where one is left out or makes no sense. */
const settings = ({ windowMs, retryMs, queueLimit }: TransactionInput, known: Settings): Settings => ({
  windowMs: isPositive(windowMs) ? windowMs : known.windowMs,
  retryMs: isPositive(retryMs) ? retryMs : known.retryMs,
  queueLimit: isPositive(queueLimit) ? queueLimit : known.queueLimit,
});
const isPositive = (value: number | undefined): value is number =>
  Number.isFinite(value) && Number(value) > 0;

const isApply = ({ event }: Args): boolean => 'effect' in event && event.effect === 'router.apply';
const isAsked = ({ context }: Args): boolean => context.job?.ask !== undefined;
/** The answer of an append whose window has run out waits for the revert. */
const isLate = ({ context }: Args): boolean =>
  context.job?.op === 'append' && context.pending?.expired === true;
/** A revert that must come about and could not: it is tried again. */
const isOwed = ({ context }: Args): boolean =>
  context.job?.op === 'revert' && context.pending?.expired === true;
/** The store shows that the apply, which never answered, did come about. */
const landed = ({ context: { job }, event }: Args): boolean =>
  job !== undefined &&
  job.op !== 'reapply' &&
  event.type === 'LOADED' &&
  event.fingerprint === job.fingerprint &&
  event.ncid !== job.before.ncid;
/** The same of a commit: the transaction is gone from the store, and what it had applied stands. */
const closed = ({ context: { job }, event }: Args): boolean =>
  job?.op === 'commit' && event.type === 'LOADED' && !event.transaction && event.ncid === job.before.ncid;

/** The store holds another config than the decisions were made on; a hand that edits it may leave its ncid. */
const moved = ({ context: { active }, event }: Args): boolean =>
  event.type === 'LOADED' && (event.ncid !== active.ncid || event.fingerprint !== active.fingerprint);

/** Another router opened, renewed or ended a transaction. */
const retold = ({ context: { pending, shared }, event }: Args): boolean =>
  event.type === 'LOADED' &&
  event.shared === true &&
  (shared !== true || pending?.transID !== event.transaction?.transID || pending?.leftMs !== undefined);
const isCommit = ({ context }: Args): boolean => context.job?.op === 'commit';

// Transitions shared by several states.

/** Decides about the request at the head of the queue. */
const decide = [
  { guard: 'refused', actions: [{ type: 'http.reply', params: params.refusal }, 'next'] },
  { guard: 'closes', target: 'applying', actions: 'begin' },
  { guard: 'commits', actions: [{ type: 'http.reply', params: params.committed }, 'commit'] },
  {
    guard: 'bypasses',
    target: 'applying',
    actions: [{ type: 'alert.raise', params: params.bypassed }, 'begin'],
  },
  { guard: 'waits', target: 'applying', actions: 'begin' },
] as const;

const silent = {
  target: 'idle',
  actions: [{ type: 'router.publish', params: params.publish }, 'settle'],
} as const;
const answered = {
  target: 'idle',
  actions: [
    { type: 'router.publish', params: params.publish },
    { type: 'http.reply', params: params.answer },
    'settle',
  ],
} as const;

/** A commit publishes nothing: what it keeps has been told of already. */
const kept = {
  target: 'idle',
  actions: [{ type: 'http.reply', params: params.answer }, 'settle'],
} as const;

const onFailure = [
  {
    guard: (args: Args) => isOwed(args) && isAsked(args),
    target: 'waiting',
    actions: [
      { type: 'http.reply', params: params.failure },
      { type: 'alert.raise', params: params.revertFailed },
      'drop',
    ],
  },
  {
    guard: isOwed,
    target: 'waiting',
    actions: [{ type: 'alert.raise', params: params.revertFailed }, 'drop'],
  },
  { guard: isAsked, target: 'idle', actions: [{ type: 'http.reply', params: params.failure }, 'drop'] },
  { target: 'idle', actions: 'drop' },
] as const;

const onOvertaken = [
  {
    guard: isAsked,
    target: 'idle',
    actions: [
      { type: 'alert.raise', params: params.storeChanged },
      { type: 'http.reply', params: params.failure },
      'adopt',
      'drop',
    ],
  },
  { target: 'idle', actions: [{ type: 'alert.raise', params: params.storeChanged }, 'adopt', 'drop'] },
] as const;

/** The store was changed behind the API's back: what it holds is what counts (R36). */
const onLoaded = [
  { guard: moved, actions: [{ type: 'alert.raise', params: params.storeChanged }, 'adopt'] },
  { guard: retold, actions: 'adopt' },
] as const;

/**
 * The router's one config and its one transaction (`docs/guides/change-the-config.md`). Every write is a request in a queue;
 * the head is judged when nothing is being applied, by the ncid and transaction that are current then, so of two
 * writers that race with one ncid exactly one wins.
 *
 * Region `transaction` says whether one is pending and holds its window; region `work` judges, applies, and reads
 * the store again where an apply ended without saying what it did.
 */
export const configTransaction = setup({
  types: {
    context: {} as TransactionContext,
    events: {} as TransactionEvent,
    input: {} as TransactionInput | undefined,
  },
  actions: {
    'http.reply': effect<ReplyParams>(),
    'router.apply': effect<ApplyParams>(),
    'router.load': effect(),
    'router.publish': effect<PublishParams>(),
    'alert.raise': effect<Alert>(),
    configure: assign(({ context, event }) => (event.type === 'CONFIGURE' ? settings(event, context) : {})),
    enqueue: assign({ queue: ({ context, event }) => [...context.queue, ...askOf(event)] }),
    next: assign({ queue: ({ context }) => context.queue.slice(1) }),
    commit: assign(({ context }) => ({ queue: context.queue.slice(1), ...ended(context, 'committed') })),
    begin: assign(({ context }) => {
      const [ask, ...queue] = context.queue;
      return ask ? { queue, job: jobOf(context, ask) } : {};
    }),
    beginRevert: assign(({ context: { active, pending, late } }) => {
      if (!pending) return {};
      const ask = late ? { ask: late, late: true as const } : {};
      return { job: { ...revertOf(active, pending), ...ask }, late: undefined };
    }),
    settle: assign(({ context, event }) => settled(context, versionOf(event))),
    drop: assign({ job: undefined, failure: undefined }),
    adopt: assign(({ context, event }) => ({
      active: { ncid: versionOf(event).ncid, fingerprint: versionOf(event).fingerprint },
      ...shared(context, event),
    })),
    noteFailure: assign({
      failure: ({ event }) => (event.type === 'effect.failed' ? event.message : 'the apply was interrupted'),
    }),
    expire: assign({
      pending: ({ context: { pending } }) => pending && { ...pending, expired: true as const },
    }),
    renewed: assign({
      pending: ({ context: { pending } }) => {
        if (!pending) return undefined;
        const { renewed: _, ...rest } = pending;
        return rest;
      },
    }),
  },
  guards: {
    refused: ({ context }) =>
      context.queue[0] !== undefined && judge(context, context.queue[0]) !== undefined,
    /** The store must learn of it, for other routers hold to the window. */
    closes: ({ context }) => context.shared === true && context.queue[0]?.op === 'commit',
    commits: ({ context }) => context.queue[0]?.op === 'commit',
    bypasses: ({ context }) => context.queue[0]?.ignoreNcid === true,
    waits: ({ context }) => context.queue.length > 0,
    full: ({ context }) => context.queue.length >= context.queueLimit,
    expired: ({ context }) => context.pending?.expired === true,
  },
  delays: {
    window: ({ context }) => context.pending?.leftMs ?? context.windowMs,
    retry: ({ context }) => context.retryMs,
  },
}).createMachine({
  id: 'router-config',
  context: ({ input }) => ({
    ...settings(input ?? {}, DEFAULTS),
    active: UNKNOWN,
    queue: [],
    used: [],
  }),
  type: 'parallel',
  on: {
    SET: [{ guard: 'full', actions: { type: 'http.reply', params: params.busy } }, { actions: 'enqueue' }],
    APPLY_CURRENT: [
      { guard: 'full', actions: { type: 'http.reply', params: params.busy } },
      { actions: 'enqueue' },
    ],
    CONFIGURE: { actions: 'configure' },
  },
  states: {
    transaction: {
      initial: 'none',
      states: {
        none: { always: { guard: ({ context }) => context.pending !== undefined, target: 'pending' } },
        pending: {
          after: { window: { actions: 'expire' } },
          always: [
            { guard: ({ context }) => context.pending === undefined, target: 'none' },
            {
              guard: ({ context }) => context.pending?.renewed === true,
              target: 'pending',
              reenter: true,
              actions: 'renewed',
            },
          ],
        },
      },
    },
    work: {
      initial: 'starting',
      states: {
        starting: { on: { LOADED: { target: 'idle', actions: 'adopt' } } },
        idle: {
          always: [{ guard: 'expired', target: 'applying', actions: 'beginRevert' }, ...decide],
          on: { LOADED: onLoaded },
        },
        applying: {
          entry: { type: 'router.apply', params: params.apply },
          on: {
            APPLIED: [
              { guard: isCommit, ...kept },
              { guard: isLate, ...silent },
              { guard: isAsked, ...answered },
              silent,
            ],
            APPLY_FAILED: onFailure,
            OVERTAKEN: onOvertaken,
            'effect.failed': { guard: isApply, target: 'verifying', actions: 'noteFailure' },
            'effect.lost': { guard: isApply, target: 'verifying', actions: 'noteFailure' },
          },
        },
        verifying: {
          entry: 'router.load',
          after: { retry: { target: 'verifying', reenter: true } },
          on: {
            LOADED: [
              { guard: closed, ...kept },
              { guard: (args: Args) => landed(args) && isLate(args), ...silent },
              { guard: (args: Args) => landed(args) && isAsked(args), ...answered },
              { guard: landed, ...silent },
              { ...onOvertaken[0], guard: (args: Args) => moved(args) && isAsked(args) },
              { ...onOvertaken[1], guard: moved },
              ...onFailure,
            ],
          },
        },
        waiting: {
          always: [{ guard: ({ context }) => !context.pending?.expired, target: 'idle' }, ...decide],
          after: { retry: 'idle' },
          on: { LOADED: onLoaded },
        },
      },
    },
  },
});
