import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** One config that the router served. */
export interface ObservedVersion {
  readonly ncid: string;
  /** Digest of the whole config without its ncid and the fields that control a write. */
  readonly fingerprint: string;
  /** Digest of the `reqId` that the router stores with it, where it does. */
  readonly request?: string;
}

export interface ObservedConfigContext {
  /** The newest last. */
  readonly known: readonly ObservedVersion[];
  /** The ncid of the one before the newest that was in force. */
  readonly previous?: string;
}

export type ObservedConfigEvent =
  /** `heldMs`: how long the one before was seen in force, milliseconds. */
  | ({ readonly type: 'SEEN'; readonly heldMs: number } & ObservedVersion)
  /** The history holds the write that made a config; `posted` is the ncid that its body bore. */
  | { readonly type: 'WRITTEN'; readonly ncid: string; readonly posted?: string; readonly ignoreNcid?: true };

/** What no write through the router's API can bring about. */
type Fault = 'same ncid' | 'foreign ncid' | 'put back';

type Args = { readonly context: ObservedConfigContext; readonly event: ObservedConfigEvent };

const KEPT = 8;
/** An uncommitted transaction reverts after 120 s; the rest is for readings between. */
const LONGEST_TRANSACTION_MS = 150_000;
/** Whatever makes an ncid ends it with the epoch milliseconds: docs/guides/reconcile-a-real-router.md. */
const NCID = /^[0-9a-f]{19}(\d{13})$/;

const madeAt = (ncid: string): number | undefined => {
  const [, digits] = NCID.exec(ncid) ?? [];
  return digits === undefined ? undefined : Number(digits);
};
const isOlder = (ncid: string, than: string | undefined): boolean => {
  const [a, b] = [madeAt(ncid), than === undefined ? undefined : madeAt(than)];
  return a !== undefined && b !== undefined && a < b;
};
const current = ({ known }: ObservedConfigContext): ObservedVersion | undefined => known.at(-1);

/**
 * Why a config cannot have come through the router's API. Every accepted write has a new ncid; only the revert of a
 * transaction nobody committed brings the one before back, and soon.
 */
function faultOf({ context, event }: Args): Fault | undefined {
  const now = current(context);
  if (event.type !== 'SEEN' || !now) return undefined;
  const { ncid, fingerprint, heldMs } = event;
  const before = context.known.find((version) => version.ncid === ncid);
  if (before && before.fingerprint !== fingerprint) return 'same ncid';
  if (madeAt(ncid) === undefined && madeAt(now.ncid) !== undefined) return 'foreign ncid';
  if (!isOlder(ncid, now.ncid)) return undefined;
  return heldMs > LONGEST_TRANSACTION_MS || (!before && isOlder(ncid, context.previous))
    ? 'put back'
    : undefined;
}

/** The router skips the ncid check for a body whose `reqId` is the stored one. */
function isRepeatedRequest({ context, event }: Args): boolean {
  const now = current(context);
  if (event.type !== 'SEEN' || now?.request === undefined) return false;
  const isKnown = context.known.some(({ ncid }) => ncid === event.ncid);
  return event.request === now.request && event.fingerprint !== now.fingerprint && !isKnown;
}

/** Whether the history shows that the ncid check was skipped. */
function isBypass({ context, event }: Args): boolean {
  if (event.type !== 'WRITTEN' || event.ncid !== current(context)?.ncid) return false;
  const { ncid, posted, ignoreNcid } = event;
  if (ignoreNcid || posted === undefined) return true;
  // A history holds the ncid that a write got, or the one that it was made from, and then an older one is refused.
  return posted !== ncid && isOlder(posted, context.previous);
}

const FAULTS: Readonly<Record<Fault, string>> = {
  'same ncid': 'its content changed and its ncid did not',
  'foreign ncid': 'its ncid is none that a router makes',
  'put back': 'an earlier ncid is in force again, and no transaction was pending',
};

const storeChanged = (args: Args): Alert => {
  const why = FAULTS[faultOf(args) ?? 'same ncid'];
  return {
    name: 'router.store_changed',
    severity: 'warning',
    text: `The router config was changed in its store and not through the API: ${why}.`,
    labels: { expected: current(args.context)?.ncid ?? '', found: args.event.ncid, why },
  };
};

const bypassed = ({ context, event }: Args): Alert => {
  const posted = event.type === 'WRITTEN' ? (event.posted ?? 'none') : 'unknown';
  const how =
    event.type === 'SEEN'
      ? 'with the reqId of the config before it'
      : event.ignoreNcid
        ? 'with ignoreNcid'
        : 'without the ncid that was in force';
  const before = event.type === 'SEEN' ? current(context)?.ncid : context.previous;
  return {
    name: 'router.ncid_bypassed',
    severity: 'warning',
    text: `A client wrote the router config ${how}, so what was saved in between may be overwritten.`,
    labels: { who: 'unknown', posted, current: before ?? '' },
  };
};

/**
 * The configs that a router elsewhere was seen to serve. It has no way to refuse a write; what did not come through the
 * router's API, or skipped the ncid check there, raises the alerts that the embedded router raises (R4, R36). A reducer:
 * its states only name whether a config has been seen.
 */
export const observedConfig = setup({
  types: {} as { context: ObservedConfigContext; events: ObservedConfigEvent },
  actions: {
    'alerts.raise': effect<Alert>(),
    remember: assign(({ context, event }) => {
      if (event.type !== 'SEEN') return {};
      const { type: _, heldMs: __, ...version } = event;
      const others = context.known.filter(({ ncid }) => ncid !== event.ncid);
      const previous = current(context)?.ncid;
      const isNew = previous !== undefined && previous !== event.ncid;
      return { known: [...others, version].slice(-KEPT), ...(isNew && { previous }) };
    }),
  },
  guards: {
    isUnchanged: ({ context, event }) =>
      event.type === 'SEEN' &&
      current(context)?.ncid === event.ncid &&
      current(context)?.fingerprint === event.fingerprint,
    isForeign: (args) => faultOf(args) !== undefined,
    isRepeatedRequest,
    isBypass,
  },
}).createMachine({
  id: 'router-observed-config',
  context: { known: [] },
  initial: 'unseen',
  on: {
    SEEN: [
      { guard: 'isUnchanged' },
      {
        guard: 'isForeign',
        target: '.seen',
        actions: [{ type: 'alerts.raise', params: storeChanged }, 'remember'],
      },
      {
        guard: 'isRepeatedRequest',
        target: '.seen',
        actions: [{ type: 'alerts.raise', params: bypassed }, 'remember'],
      },
      { target: '.seen', actions: 'remember' },
    ],
    WRITTEN: { guard: 'isBypass', actions: { type: 'alerts.raise', params: bypassed } },
  },
  states: { unseen: {}, seen: {} },
});
