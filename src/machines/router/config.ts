import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  applyParams,
  bypassAlert,
  committedReply,
  doneReply,
  failedReply,
  fullReply,
  isTooLate,
  jobOf,
  nextRefusal,
  publishParams,
  type RefusalOf,
  refusalReply,
  requestsOf,
  revertFailedAlert,
  revertOf,
  storeChangedAlert,
  tooLateReply,
  UNKNOWN,
  verifyParams,
  versionOf,
  whileFree,
  whilePending,
  whileReverting,
  withEnded,
  withFence,
  withSettings,
} from './config-rules.ts';
import type {
  ApplyParams,
  ConfigContext,
  ConfigEvent,
  ConfigInput,
  PublishParams,
  ReplyParams,
  VerifyParams,
} from './config-shapes.ts';

const apply = { type: 'router.apply', params: applyParams } as const;
const verify = { type: 'router.verify', params: verifyParams } as const;
const publish = { type: 'router.publish', params: publishParams } as const;
const replyDone = { type: 'http.reply', params: doneReply } as const;
const replyFailed = { type: 'http.reply', params: failedReply } as const;
const replyFull = { type: 'http.reply', params: fullReply } as const;
const replyTooLate = { type: 'http.reply', params: tooLateReply } as const;
const alertStoreChanged = { type: 'alerts.raise', params: storeChangedAlert } as const;
const alertRevertFailed = { type: 'alerts.raise', params: revertFailedAlert } as const;

/** Answers the first request of the queue, which must not be carried out in this state. */
const replyRefusal = (refusalOf: RefusalOf) =>
  ({ type: 'http.reply', params: ({ context }: Args) => refusalReply(context, refusalOf) }) as const;

/** Begins what the first request of the queue asks for. */
const begin = [
  {
    guard: 'bypasses',
    target: 'busy',
    actions: [{ type: 'alerts.raise', params: bypassAlert }, 'begin', apply],
  },
  { guard: 'hasRequest', target: 'busy', actions: ['begin', apply] },
] as const;

/** After an apply that ended without a result, the store is read until it says what became of it. */
const applyAndVerify = {
  initial: 'applying',
  states: {
    applying: {
      on: {
        'effect.failed': { guard: 'ofApply', target: 'verifying', actions: ['recordFault', verify] },
        'effect.lost': { guard: 'ofApply', target: 'verifying', actions: ['recordFault', verify] },
      },
    },
    verifying: { after: { retry: { target: 'verifying', reenter: true, actions: verify } } },
  },
} as const;

/** The store was read again, and its content decides (R36). */
const onLoaded = [
  { guard: 'storeChanged', target: 'adopting', actions: alertStoreChanged },
  { guard: 'othersActed', target: 'adopting' },
] as const;

/** Transitions of a state `adopting` for what another router did to the transaction. */
const othersEnded = {
  guard: 'othersEnded',
  target: '#router-config.free',
  actions: ['activate', 'leave'],
} as const;
const othersOpened = {
  guard: 'othersOpened',
  target: '#router-config.pending',
  actions: ['activate', 'share', 'join'],
} as const;

/** The apply of a commit or a revert ends the transaction. A commit publishes nothing, because its change was published before. */
const endOfTransaction = [
  { guard: 'commits', target: '#router-config.free', actions: [replyDone, 'end', 'activate', 'drop'] },
  { target: '#router-config.free', actions: [publish, replyDone, 'end', 'activate', 'drop'] },
] as const;

const onOvertaken = { target: 'adopting', actions: [alertStoreChanged, replyFailed, 'drop'] } as const;

/**
 * The router's one config and its one transaction (`docs/guides/change-the-config.md`). Every write is a request in a
 * queue. The first one is decided when nothing is being applied, by the ncid and the transaction of that moment. So exactly
 * one of two writers that race with the same ncid wins.
 *
 * The state says where the transaction stands: none (`free`), `pending` while its window runs, `expired` from the end
 * of the window until the config before it is restored. Every request is answered, also when its client has gone: such a
 * reply has no effect.
 */
export const routerConfig = setup({
  types: {
    context: {} as ConfigContext,
    events: {} as ConfigEvent,
    input: {} as ConfigInput | undefined,
  },
  actions: {
    'http.reply': effect<ReplyParams>(),
    'router.apply': effect<ApplyParams>(),
    'router.verify': effect<VerifyParams>(),
    'router.publish': effect<PublishParams>(),
    'alerts.raise': effect<Alert>(),
    configure: assign(({ context, event }) =>
      event.type === 'CONFIGURE' ? withSettings(event, context) : {},
    ),
    enqueue: assign({ queue: ({ context, event }) => [...context.queue, ...requestsOf(event)] }),
    noteFence: assign(({ context, event }) => withFence(context, event)),
    next: assign({ queue: ({ context }) => context.queue.slice(1) }),
    begin: assign(({ context }) => {
      const [request, ...queue] = context.queue;
      return request ? { queue, job: jobOf(context, request) } : {};
    }),
    beginRevert: assign({ job: ({ context }) => revertOf(context) }),
    recordFault: assign({
      job: ({ context: { job }, event }) =>
        job && {
          ...job,
          fault: event.type === 'effect.failed' ? event.message : 'the apply was interrupted',
        },
    }),
    drop: assign({ job: undefined }),
    /** The config that the event names is the active one. */
    activate: assign({ active: ({ event }) => versionOf(event) }),
    /** A transaction begins with the job that has been applied. */
    open: assign({
      pending: ({ context: { job, pending } }) =>
        job ? { transID: job.transID ?? '', who: job.who, previous: job.before } : pending,
    }),
    /** The window that begins now is our own, also where another router had opened the transaction. */
    renew: assign({
      pending: ({ context: { pending } }) =>
        pending && { transID: pending.transID, who: pending.who, previous: pending.previous },
    }),
    commit: assign(({ context }) => withEnded(context, 'committed')),
    end: assign(({ context }) => withEnded(context, context.job?.op === 'commit' ? 'committed' : 'reverted')),
    // Other routers on the same store.
    share: assign(({ event }) => ('shared' in event && event.shared ? { shared: true as const } : {})),
    join: assign(({ event }) => ('transaction' in event ? { pending: event.transaction } : {})),
    leave: assign(({ context, event }) =>
      withEnded(
        context,
        versionOf(event).fingerprint === context.pending?.previous.fingerprint ? 'reverted' : 'committed',
      ),
    ),
  },
  guards: {
    full: ({ context }) => context.queue.length >= context.queueLimit,
    tooLate: isTooLate,
    hasRequest: ({ context }) => context.queue.length > 0,
    refusedWhileFree: ({ context }) => nextRefusal(context, whileFree) !== undefined,
    refusedWhilePending: ({ context }) => nextRefusal(context, whilePending) !== undefined,
    bypasses: ({ context }) => context.queue[0]?.ignoreNcid === true,
    /** In a store that routers share, a commit must be written like any other change. */
    commitsHere: ({ context }) => context.queue[0]?.op === 'commit' && context.shared !== true,
    isApplying: ({ context }) => context.job !== undefined,
    isVerifying: ({ context }) => context.job?.fault !== undefined,
    appends: ({ context }) => context.job?.op === 'append',
    commits: ({ context }) => context.job?.op === 'commit',
    reverts: ({ context }) => context.job?.op === 'revert',
    ofApply: ({ event }) => 'effect' in event && event.effect === 'router.apply',
    /** Somebody who edits the store by hand may leave its ncid unchanged, so the fingerprint counts too. */
    storeChanged: ({ context: { active }, event }) =>
      event.type === 'LOADED' && (event.ncid !== active.ncid || event.fingerprint !== active.fingerprint),
    othersActed: ({ context: { pending, shared }, event }) =>
      event.type === 'LOADED' &&
      event.shared === true &&
      (shared !== true || pending?.transID !== event.transaction?.transID || pending?.leftMs !== undefined),
    othersOpened: ({ context: { pending }, event }) => {
      const { transaction } = 'shared' in event ? event : {};
      if (!transaction) return false;
      if (pending?.transID !== transaction.transID) return true;
      return pending.leftMs !== undefined && transaction.leftMs > 0;
    },
    othersEnded: ({ context: { pending }, event }) =>
      pending !== undefined && 'shared' in event && event.shared === true && !event.transaction,
  },
  delays: {
    window: ({ context }) => context.pending?.leftMs ?? context.windowMs,
    retry: ({ context }) => context.retryMs,
  },
}).createMachine({
  id: 'router-config',
  context: ({ input }) => ({
    ...withSettings(input ?? {}),
    active: UNKNOWN,
    queue: [],
    used: [],
  }),
  initial: 'unread',
  on: {
    SET: [{ guard: 'full', actions: ['noteFence', replyFull] }, { actions: ['noteFence', 'enqueue'] }],
    APPLY_CURRENT: [
      { guard: 'full', actions: ['noteFence', replyFull] },
      { actions: ['noteFence', 'enqueue'] },
    ],
    CONFIGURE: { actions: 'configure' },
  },
  states: {
    /** The store has not been read yet, and requests wait for it. */
    unread: { on: { LOADED: 'free.adopting' } },

    /** No transaction is pending. */
    free: {
      initial: 'idle',
      // Also while another one is being applied: its result cannot make this one match.
      on: { SET: { guard: 'tooLate', actions: ['noteFence', replyTooLate] } },
      states: {
        /** Choice: does the store hold a transaction of another router? */
        adopting: {
          always: [othersOpened, { target: 'idle', actions: ['activate', 'share'] }],
        },
        idle: {
          always: [{ guard: 'refusedWhileFree', actions: [replyRefusal(whileFree), 'next'] }, ...begin],
          on: { LOADED: onLoaded },
        },
        busy: {
          ...applyAndVerify,
          on: {
            APPLIED: [
              {
                guard: 'appends',
                target: '#router-config.pending',
                actions: [publish, replyDone, 'open', 'activate', 'drop'],
              },
              { target: 'idle', actions: [publish, replyDone, 'activate', 'drop'] },
            ],
            APPLY_FAILED: { target: 'idle', actions: [replyFailed, 'drop'] },
            OVERTAKEN: onOvertaken,
          },
        },
      },
    },

    /** A transaction is applied and persisted, and its window runs. */
    pending: {
      initial: 'idle',
      after: {
        window: [
          { guard: 'isVerifying', target: 'expired.busy.verifying' },
          { guard: 'isApplying', target: 'expired.busy' },
          { target: 'expired.busy', actions: ['beginRevert', apply] },
        ],
      },
      states: {
        /** Choice: what did another router do to the transaction? */
        adopting: {
          always: [othersEnded, othersOpened, { target: 'idle', actions: ['activate', 'share'] }],
        },
        idle: {
          always: [
            { guard: 'refusedWhilePending', actions: [replyRefusal(whilePending), 'next'] },
            {
              guard: 'commitsHere',
              target: '#router-config.free',
              actions: [{ type: 'http.reply', params: committedReply }, 'next', 'commit'],
            },
            ...begin,
          ],
          on: { LOADED: onLoaded },
        },
        busy: {
          ...applyAndVerify,
          on: {
            APPLIED: [
              {
                guard: 'appends',
                target: '#router-config.pending',
                actions: [publish, replyDone, 'renew', 'activate', 'drop'],
              },
              ...endOfTransaction,
            ],
            APPLY_FAILED: { target: 'idle', actions: [replyFailed, 'drop'] },
            OVERTAKEN: onOvertaken,
          },
        },
      },
    },

    /** The window has run out. An apply that is under way ends first; then the previous config is restored. */
    expired: {
      initial: 'busy',
      states: {
        adopting: {
          always: [
            othersEnded,
            othersOpened,
            { target: 'busy', actions: ['activate', 'share', 'beginRevert', apply] },
          ],
        },
        busy: {
          ...applyAndVerify,
          on: {
            APPLIED: [
              // The client is answered after the revert, because a success now would be wrong a moment later.
              {
                guard: 'appends',
                target: 'busy',
                reenter: true,
                actions: [publish, 'activate', 'beginRevert', apply],
              },
              ...endOfTransaction,
            ],
            APPLY_FAILED: [
              { guard: 'reverts', target: 'retrying', actions: [replyFailed, alertRevertFailed, 'drop'] },
              { target: 'busy', reenter: true, actions: [replyFailed, 'drop', 'beginRevert', apply] },
            ],
            OVERTAKEN: onOvertaken,
          },
        },
        /** The revert failed. It is repeated until it succeeds. */
        retrying: {
          always: { guard: 'hasRequest', actions: [replyRefusal(whileReverting), 'next'] },
          after: { retry: { target: 'busy', actions: ['beginRevert', apply] } },
          on: { LOADED: onLoaded },
        },
      },
    },
  },
});
