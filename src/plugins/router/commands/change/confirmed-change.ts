import { setTimeout as delay } from 'node:timers/promises';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import type { CommandFlag } from '../../../../core/host/plugin/command.ts';
import { type Clock, systemClock } from '../../../../core/kernel/clock.ts';
import type { RouterClient, WriteAnswer } from '../client.ts';

/** The flags of commands that change the config. */
export const changeFlags: readonly CommandFlag[] = [
  {
    flags: '--check <command>',
    summary: 'shell command that must succeed while the change is in force; may be given several times',
    repeatable: true,
  },
  {
    flags: '--check-sets',
    summary: "the prefixes of all networks, so both sides' /64s, must come to be in their address sets",
  },
  { flags: '--yes', summary: 'keep the change without a question when the checks, if any, pass' },
  { flags: '--dry-run', summary: 'show what would change, and change nothing' },
  { flags: '--window <seconds>', summary: 'how long the router waits for a commit, when it is not ours' },
];

/** Exit codes of commands that change the config; 2 is wrong usage, as everywhere. */
export const EXIT = { committed: 0, refused: 1, reverted: 3, unknown: 4 } as const;
export const EXIT_TEXT = 'exit 0 kept or nothing to do, 1 nothing applied, 3 reverted, 4 unknown';

/** How a safe change ended. */
export type ChangeEnd =
  | { readonly outcome: 'committed'; readonly ncid: string }
  /** Nothing was applied. */
  | { readonly outcome: 'refused'; readonly reason: string }
  /** It was applied and reverted: the previous config is active. */
  | { readonly outcome: 'reverted'; readonly reason: string }
  /** The router did not answer; unless the commit reached it, it reverts at its deadline. */
  | { readonly outcome: 'unknown'; readonly reason: string };

/** Whether to keep the change. */
export type Verdict = { readonly keep: true } | { readonly keep: false; readonly reason: string };

export interface ConfirmedChange {
  readonly client: RouterClient;
  /** The whole config, with the ncid it was made from. */
  readonly config: NetworkConfig;
  readonly transID: string;
  /** The system's unless given. */
  readonly clock?: Clock;
  /**
   * Decides while the change is active. An error reverts the change and is thrown again.
   *
   * @param requestedAt epoch milliseconds before the append was sent: the window cannot have begun earlier
   */
  readonly decide: (requestedAt: number) => Promise<Verdict>;
}

const TRIES = 5;
const RETRY_MS = 400;

/**
 * The safe change procedure (`docs/guides/change-the-config.md`; R31): append, decide, commit or revert. Whatever
 * happens here, even if this process is killed, the router reverts by itself at the end of its window.
 */
export async function changeSafely({
  client,
  config,
  transID,
  decide,
  clock = systemClock,
}: ConfirmedChange): Promise<ChangeEnd> {
  const requestedAt = clock.now();
  const answer = await client.append(config, transID);
  if (answer.kind !== 'done') return notAppended(client, transID, answer);
  let verdict: Verdict;
  try {
    verdict = await decide(requestedAt);
  } catch (error) {
    await revert(client, transID, 'the command failed');
    throw error;
  }
  return verdict.keep ? commit(client, transID, answer.ncid) : await revert(client, transID, verdict.reason);
}

/** Only our own router's refusal proves that nothing was applied; a missing answer proves nothing. */
async function notAppended(
  client: RouterClient,
  transID: string,
  answer: Exclude<WriteAnswer, { kind: 'done' }>,
): Promise<ChangeEnd> {
  if (answer.kind === 'refused' && answer.code !== undefined)
    return { outcome: 'refused', reason: answer.reason };
  const undone = await finish(client, 'revert', transID);
  if (undone.kind === 'done') return { outcome: 'reverted', reason: answer.reason };
  // The router has no transaction of this command: nothing was applied, or it has ended.
  if (undone.kind === 'refused') return { outcome: 'refused', reason: answer.reason };
  return { outcome: 'unknown', reason: `the append: ${answer.reason}; the revert: ${undone.reason}` };
}

async function commit(client: RouterClient, transID: string, ncid: string): Promise<ChangeEnd> {
  const answer = await finish(client, 'commit', transID);
  if (answer.kind === 'done') return { outcome: 'committed', ncid };
  if (answer.kind === 'unknown') return { outcome: 'unknown', reason: `the commit: ${answer.reason}` };
  // Only this command knows the id, and it requested nothing but the commit: an earlier try has reached the router.
  if (answer.code === 'HF_ROUTER_TRANSACTION_USED') return { outcome: 'committed', ncid };
  if (answer.tries > 1) return { outcome: 'unknown', reason: `the commit: ${answer.reason}` };
  return { outcome: 'reverted', reason: `the commit came too late: ${answer.reason}` };
}

async function revert(client: RouterClient, transID: string, reason: string): Promise<ChangeEnd> {
  const answer = await finish(client, 'revert', transID);
  if (answer.kind === 'unknown')
    return { outcome: 'unknown', reason: `${reason}; the revert: ${answer.reason}` };
  // Refused: the router has reverted by itself, or an earlier attempt of this command reached it.
  return { outcome: 'reverted', reason };
}

/** Repeats a request that may not have reached the router, under the same id. */
async function finish(
  client: RouterClient,
  op: 'commit' | 'revert',
  transID: string,
): Promise<WriteAnswer & { readonly tries: number }> {
  for (let tries = 1; ; tries += 1) {
    const answer = await client.finish(op, transID);
    if (answer.kind !== 'unknown' || tries === TRIES) return { ...answer, tries };
    await delay(RETRY_MS);
  }
}
