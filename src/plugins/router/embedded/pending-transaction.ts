import type { RuntimeServices } from '../../../core/host/plugin/host.ts';
import { timestamp } from '../../../core/host/terminal.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { type ClockJump, jumpsOf, timeByPresentClock, timeLeft } from '../../../core/kernel/clock-jumps.ts';
import { actorRef, seqOfEffect } from '../../../core/kernel/ids.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { CLOCK, delayOf } from '../../../core/kernel/log/record.ts';

/** The actor that decides about the config. */
export const CONFIG_ACTOR = actorRef('router.config', 'default');

/** A transaction of the router that is neither committed nor reverted (R40), as health pages and `status` report it. */
export type PendingTransaction = {
  readonly transID: string;
  /** Who opened it. */
  readonly who: string;
  /** ISO 8601; absent once the window is over and the revert is under way. */
  readonly deadline?: string;
  readonly secondsLeft: number;
  /** Its window is over. */
  readonly reverting?: true;
  /** Its revert failed and is tried again: `reason` says so. */
  readonly ok?: false;
  readonly reason?: string;
  /** One sentence for a person. */
  readonly text: string;
};

type Facts = Omit<PendingTransaction, 'text'>;

/** The pending transaction of a running instance; undefined while none is pending. */
export function transactionOf({
  actors,
  clock,
}: Pick<RuntimeServices, 'actors' | 'clock'>): PendingTransaction | undefined {
  return pendingTransaction(actors.snapshot(CONFIG_ACTOR), clock.now(), actors.snapshot(CLOCK.actor));
}

/**
 * The pending transaction of a running instance, from the state of `CONFIG_ACTOR`.
 *
 * @param now epoch milliseconds
 * @param clock the state of the clock's actor: what is left counts from the time that passed
 * @returns undefined while none is pending
 */
export function pendingTransaction(
  state: Readonly<ActorState> | undefined,
  now: number,
  clock?: Readonly<ActorState>,
): PendingTransaction | undefined {
  const facts = factsOf(state, now, jumpsOf(clock));
  return facts && { ...facts, text: runningText(facts) };
}

/**
 * The transaction that a stopped instance left pending, from the states of its log.
 *
 * @param now epoch milliseconds
 */
export function stoppedTransaction(
  states: ReadonlyMap<string, Readonly<ActorState>>,
  now: number,
): PendingTransaction | undefined {
  const facts = factsOf(states.get(CONFIG_ACTOR), now, jumpsOf(states.get(CLOCK.actor)));
  return facts && { ...facts, text: stoppedText(facts) };
}

/** A pending transaction as another part of the program reported it. */
export function isPendingTransaction(fact: unknown): fact is PendingTransaction {
  return (
    isObject(fact) &&
    typeof fact.transID === 'string' &&
    typeof fact.who === 'string' &&
    typeof fact.secondsLeft === 'number'
  );
}

function factsOf(
  state: Readonly<ActorState> | undefined,
  now: number,
  jumps: readonly ClockJump[],
): Facts | undefined {
  const { pending } = isObject(state?.context) ? state.context : {};
  if (!state || !isObject(pending)) return undefined;
  const owner = { transID: String(pending.transID), who: String(pending.who) };
  const window = Object.entries(state.timers).find(([timer]) => delayOf(timer) === 'window')?.[1];
  if (!window) {
    const { expired } = isObject(state.value) ? state.value : {};
    const stuck = { ok: false, reason: 'its revert failed and is tried again; the log says why' } as const;
    return { ...owner, reverting: true, secondsLeft: 0, ...(expired === 'retrying' && stuck) };
  }
  const leftMs = timeLeft(window, now, jumps);
  const at = timeByPresentClock(window.at, seqOfEffect(window.id), jumps);
  const deadline = new Date(leftMs === 0 ? Math.min(at, now) : now + leftMs).toISOString();
  return { ...owner, deadline, secondsLeft: Math.ceil(leftMs / 1_000) };
}

function runningText({ transID, who, deadline, secondsLeft }: Facts): string {
  const opened = `${transID} by ${who} is pending`;
  if (deadline === undefined) return `${opened}; its window is over, the revert is under way`;
  return `${opened}; reverts at ${timestamp(Date.parse(deadline))}, ${secondsLeft} s left`;
}

function stoppedText({ transID, who, deadline, secondsLeft }: Facts): string {
  const opened = `${transID} by ${who} is pending`;
  if (deadline === undefined) return `${opened}; its window is over, the next start goes on with the revert`;
  const at = timestamp(Date.parse(deadline));
  return secondsLeft > 0
    ? `${opened}; the next start reverts it at ${at}, ${secondsLeft} s left`
    : `${opened}; its deadline was ${at}: the next start reverts it at once`;
}
