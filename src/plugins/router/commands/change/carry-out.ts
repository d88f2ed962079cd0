import { DROPPED_PATH } from '../../../../core/contracts/reconciler.ts';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import { HostError } from '../../../../core/host/errors/host-error.ts';
import { maskText } from '../../../../core/host/logging/mask-text.ts';
import { askIfRunning } from '../../../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../../../core/host/plugin/command.ts';
import { type Clock, systemClock } from '../../../../core/kernel/clock.ts';
import { HoldfastError, isCoded } from '../../../../core/kernel/errors/holdfast-error.ts';
import { collisionText, setCollisions } from '../../config/networks.ts';
import { validateConfig } from '../../config/validate.ts';
import { newTransId } from '../client.ts';
import { differenceOf, fingerprintOf, leavesOf, pointer, showChanges } from '../leaves.ts';
import type { RouterTarget } from '../target.ts';
import { type CheckResult, runCheck } from './checks.ts';
import { type ChangeEnd, changeSafely, EXIT, type Verdict } from './confirmed-change.ts';
import { checkSets } from './sets-check.ts';
import { askToKeep, Window } from './window.ts';

/** How long the running instance may take to hear of a change, milliseconds. */
const ANNOUNCE_MS = 5_000;

export interface WantedChange {
  readonly target: RouterTarget;
  readonly before: NetworkConfig;
  readonly after: NetworkConfig;
  /** For usage errors. */
  readonly command: string;
  /** The system's unless given. */
  readonly clock?: Clock;
}

/**
 * Shows a change and carries it out by the safe procedure (R31), on a terminal or without one.
 *
 * @throws HF_ROUTER_CONFIG_INVALID, HF_ROUTER_STATIC_ROUTE the config would be refused; nothing is posted then
 * @throws HF_CLI_USAGE there is no terminal to confirm on
 */
export async function carryOut(
  wanted: WantedChange,
  flags: Readonly<Record<string, unknown>>,
  context: CommandContext,
): Promise<number> {
  const { target, before, after, command, clock = systemClock } = wanted;
  const { json, note, terminal, dataDir } = context;
  const say = json ? note : context.print;
  const changes = differenceOf(before, after, fingerprintOf(dataDir));
  const finished = (end: Record<string, unknown>, code: number): number => {
    if (json) context.print(JSON.stringify({ ...end, changes }));
    return code;
  };
  if (changes.length === 0) {
    say('Nothing would change.');
    return finished({ outcome: 'unchanged' }, EXIT.committed);
  }
  showChanges(changes, say, terminal.paint);
  validateConfig(after);
  for (const collision of setCollisions(after)) note(`Warning: ${collisionText(collision)}.`);
  if (flags.dryRun === true) {
    say(
      `${changes.length === 1 ? '1 change' : `${changes.length} changes`}; nothing was posted (--dry-run).`,
    );
    return finished({ outcome: 'dry run' }, EXIT.committed);
  }
  const checks = Array.isArray(flags.check) ? (flags.check as string[]) : [];
  const sets = flags.checkSets === true;
  const ask = flags.yes !== true && checks.length === 0 && !sets;
  if (ask && !(terminal.interactive && process.stdin.isTTY === true && !json)) {
    const reason = 'There is no terminal to confirm on: use --check, --check-sets, --yes or --dry-run.';
    throw new HostError('HF_CLI_USAGE', { reason, command });
  }
  context.signal.throwIfAborted(); // from here on there is something to undo
  const removed = [...onlyIn(before, after), ...onlyIn(after, before)];
  await announce(removed, context);
  const transID = newTransId();
  const results: CheckResult[] = [];
  const quietly = quiet(say, terminal);
  const windowMs = windowOf(flags, wanted);
  const window = new Window({ context, target, transID, windowMs, clock });
  let end: ChangeEnd;
  try {
    end = await changeSafely({
      client: target.api(),
      config: after,
      transID,
      clock,
      decide: async (requestedAt): Promise<Verdict> => {
        await window.open(requestedAt);
        quietly(`In force, and reverted at ${window.deadlineText} unless it is kept.`);
        for (const [index, check] of checks.entries()) {
          if (window.over.aborted) break;
          window.says(`check ${index + 1} of ${checks.length}: ${maskText(check).slice(0, 50)}`);
          const environment = { HOLDFAST_TRANSACTION: transID, HOLDFAST_DEADLINE: window.deadlineText };
          const result = await runCheck(check, environment, window.over, (line) => quietly(`  | ${line}`));
          results.push(result);
          quietly(checkText(result));
          if (result.outcome !== 'passed') break;
        }
        if (sets && !window.over.aborted && results.every(({ outcome }) => outcome === 'passed')) {
          window.says('the address sets follow');
          const result = await checkSets(target, window.over, (line) => quietly(`  | ${line}`));
          results.push(result);
          quietly(checkText(result));
        }
        if (window.over.aborted) return { keep: false, reason: window.why };
        const bad = results.find(({ outcome }) => outcome !== 'passed');
        if (bad)
          return { keep: false, reason: `a check ${bad.outcome} (${bad.exit}): ${maskText(bad.command)}` };
        if (!ask) return { keep: true };
        window.says('keep this change? [y/N]');
        const kept = await askToKeep(window.over);
        if (kept === true) return { keep: true };
        return { keep: false, reason: kept === false ? 'it was not confirmed' : window.why };
      },
    });
  } finally {
    window.close();
  }
  quietly(endText(end, terminal.paint));
  // Once it is kept, nothing reverts it any more: what it added is no longer removed on purpose.
  if (end.outcome === 'committed') await announce(onlyIn(after, before), context, true);
  return finished({ ...end, transID, checks: results }, EXIT[end.outcome]);
}

/** An interrupt before anything was posted is a failure here, unlike in commands that only read. */
export async function unlessInterrupted(
  { signal, note }: Pick<CommandContext, 'signal' | 'note'>,
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!signal.aborted || error instanceof HoldfastError) throw error;
    note(`Interrupted (${String(signal.reason)}); nothing was posted.`);
    return EXIT.refused;
  }
}

/** A line that cannot be printed must not end the window here: a closed output is handled elsewhere, and reverts. */
function quiet(
  say: (line: string) => void,
  { progress }: CommandContext['terminal'],
): (line: string) => void {
  return (line) => {
    try {
      progress(''); // the countdown comes back with its next second
      say(line);
    } catch {}
  };
}

function windowOf(flags: Readonly<Record<string, unknown>>, { target, command }: WantedChange): number {
  if (flags.window === undefined) return target.windowMs;
  const seconds = Number(flags.window);
  if (Number.isFinite(seconds) && seconds > 0) return seconds * 1000;
  throw new HostError('HF_CLI_USAGE', { reason: '--window takes seconds, more than 0.', command });
}

function checkText({ command, outcome, exit, ms }: CheckResult): string {
  return `check ${outcome}${outcome === 'passed' ? '' : ` (${exit})`} after ${ms} ms: ${maskText(command)}`;
}

function endText(end: ChangeEnd, paint: CommandContext['terminal']['paint']): string {
  switch (end.outcome) {
    case 'committed':
      return `${paint(['bold', 'green'], 'Kept.')} The config is ncid ${end.ncid}.`;
    case 'refused':
      return `${paint(['bold', 'red'], 'Refused, nothing was applied:')} ${end.reason}`;
    case 'reverted':
      return `${paint(['bold', 'yellow'], 'Reverted:')} ${end.reason}`;
    case 'unknown':
      return `${paint(['bold', 'red'], 'Unknown:')} ${end.reason}. Unless a commit got through, the router reverts by itself; see \`holdfast router history\`.`;
  }
}

/** The paths of values that the first config has and the second has not. */
function onlyIn(config: NetworkConfig, other: NetworkConfig): (readonly string[])[] {
  const present = new Set(leavesOf(other).map(({ path }) => pointer(path)));
  return leavesOf(config)
    .map(({ path }) => path)
    .filter((path) => !present.has(pointer(path)));
}

/** Tells the running instance which paths a change, or its revert, removes on purpose. @param over no longer */
async function announce(
  paths: readonly (readonly string[])[],
  { dataDir }: CommandContext,
  over = false,
): Promise<void> {
  const instance = { dataDir, signal: AbortSignal.timeout(ANNOUNCE_MS) };
  try {
    await askIfRunning(instance, `${DROPPED_PATH}/asked`, { paths, over }, 'it runs no reconciler');
  } catch (error) {
    // An instance without a reconciler compares no configs, and one that does not answer must not stop the change.
    if (!isCoded(error) && !instance.signal.aborted) throw error;
  }
}
