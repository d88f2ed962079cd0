import { moved } from '../clock-set.ts';
import { counted } from './allowance.ts';
import type { CallEnded, CallRequest } from './call-shapes.ts';
import { add, limitedNames, NO_CALLS, spentAt, usesAfter, usesOf, windowAt } from './key-limits.ts';
import type { KeyContext } from './key-shapes.ts';
import { BUDGET, type Shared, sharedMoved } from './shares.ts';

// What a key counts: calls, refusals, the minutes of its limits, and money. Limits are decided by these.

/** @returns what a call that is admitted leaves */
export function afterCall(context: KeyContext, call: CallRequest): Partial<KeyContext> {
  const isCounted = call.method === 'tools/call';
  const { window } = windowAt(context, call.at);
  const { spend, since } = spentAt(context, call.at);
  const limited = isCounted ? limitedNames(context, call) : [];
  return {
    lastSeenAt: call.at,
    calls: context.calls + 1,
    ...(isCounted && { window: { at: window.at, calls: window.calls + 1 } }),
    ...(isCounted && call.cost && { spend: add(spend, call.cost) }),
    ...(isCounted && call.cost && context.terms?.budgetMs !== undefined && { spendSince: since }),
    ...(limited.length > 0 && { windows: windowsAfter(context, limited, call.at) }),
    ...sharedAfter(context, call, true),
  };
}

/** @returns what a call that is refused leaves */
export function afterRefusal(context: KeyContext, call: CallRequest): Partial<KeyContext> {
  const { at, count = 1 } = call;
  return {
    lastSeenAt: at,
    refused: context.refused + count,
    ...sharedAfter(context, call, false),
    // After a clock was set back, its minute would otherwise begin again at every refusal and never end.
    ...(at < context.window.at && { window: windowAt(context, at).window }),
  };
}

/** @returns what the end of a call leaves: one that never reached its upstream costs nothing */
export function afterEnd(context: KeyContext, { cost, outcome }: CallEnded): Partial<KeyContext> {
  const reached = !['unreachable', 'gone', 'answered'].includes(outcome);
  if (!cost || reached) return {};
  const { shared } = context;
  return {
    spend: add(context.spend, -cost),
    ...(shared?.own[BUDGET] && { shared: refunded(shared, cost) }),
  };
}

/**
 * @returns the counters after the wall clock was set. The limit of a minute is a duration; the expiry of a key and the end of
 * an overlap are dates, and stay
 */
export function afterClockSet(context: KeyContext, byMs: number): Partial<KeyContext> {
  return {
    ...moved(context, byMs, 'warnedAt'),
    window: { ...context.window, ...moved(context.window, byMs, 'at') },
    ...moved(context, byMs, 'spendSince'),
    ...(context.shared && { shared: sharedMoved(context.shared, byMs) }),
    ...(context.windows && {
      windows: Object.fromEntries(
        Object.entries(context.windows).map(([name, window]) => [
          name,
          { ...window, ...moved(window, byMs, 'at') },
        ]),
      ),
    }),
  };
}

/** The windows of single servers and tools after another call. */
function windowsAfter(
  { windows, terms }: KeyContext,
  names: readonly string[],
  at: number,
): NonNullable<KeyContext['windows']> {
  // What has no limit any more is not counted any more.
  const kept = Object.entries(windows ?? {}).filter(([name]) => Object.hasOwn(terms?.rpmLimits ?? {}, name));
  const counted = names.map((name) => {
    const { window } = windowAt({ window: windows?.[name] ?? NO_CALLS }, at);
    return [name, { at: window.at, calls: window.calls + 1 }] as const;
  });
  return Object.fromEntries([...kept, ...counted]);
}

/** What is shared after a call. */
function sharedAfter(
  context: KeyContext,
  call: CallRequest,
  isAdmitted: boolean,
): Pick<KeyContext, 'shared'> {
  const uses = usesAfter(usesOf(context, call), call, isAdmitted);
  return call.cluster && uses.length > 0 ? { shared: counted(context, call.cluster, uses, call.at) } : {};
}

/** Gives back what a call cost that never reached its upstream. */
function refunded(shared: Shared, cost: number): Shared {
  const own = shared.own[BUDGET];
  return own
    ? { ...shared, own: { ...shared.own, [BUDGET]: { ...own, used: add(own.used, -cost) } } }
    : shared;
}
