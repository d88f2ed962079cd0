import type { RouterTransaction } from '../core/contracts/router-transaction.ts';
import type { CommandRun } from '../core/host/plugin/command.ts';
import {
  type Colour,
  duration,
  plainText,
  shortFields,
  shortValue,
  type Terminal,
  timestamp,
  wrapped,
} from '../core/host/terminal.ts';
import { isObject } from '../core/kernel/json.ts';
import { FAILED, OK } from './failure.ts';
import type { Instance } from './instance.ts';
import { lookAt } from './instance.ts';

/** `holdfast status`: what runs on a data folder, and how; else how the last run ended (R29, R40). */
export const showStatus: CommandRun = async (_args, _flags, { dataDir, json, print, signal, terminal }) => {
  const now = Date.now();
  const instance = await lookAt(dataDir, now, signal);
  if (json) print(JSON.stringify(instance, null, 2));
  else for (const line of instanceLines(instance, now, terminal)) print(line);
  return instance.state === 'ok' ? OK : FAILED;
};

const HEADLINES: Readonly<Record<Instance['state'], readonly [text: string, colour: Colour]>> = {
  ok: ['Holdfast runs and is healthy.', 'green'],
  degraded: ['Holdfast runs, degraded: a part of it is not as it should be.', 'yellow'],
  failing: ['Holdfast runs, but can decide nothing: its log takes no records.', 'red'],
  starting: ['Holdfast is starting, or has just been asked to stop.', 'yellow'],
  unreachable: ['Holdfast cannot be asked how it is.', 'red'],
  stopped: ['Holdfast does not run here.', 'red'],
};

/** What is known of an instance, for a person. @param now epoch milliseconds */
export function instanceLines(instance: Instance, now: number, terminal: Terminal): string[] {
  const { paint, interactive, columns } = terminal;
  const {
    state,
    dataDir,
    pid,
    startedAt,
    version,
    surfaces,
    plugins,
    log,
    transaction,
    facts,
    reason,
    reasons,
  } = instance;
  const [headline, colour] = HEADLINES[state];
  const column = Math.max(12, ...Object.keys(facts ?? {}).map((name) => name.length + 1));
  // What is no terminal gets whole lines: it is searched.
  const width = interactive ? columns - column - 2 : Number.POSITIVE_INFINITY;
  const row = (name: string, text: string) =>
    wrapped(plainText(text), width).map(
      (line, index) => `  ${paint('dim', (index === 0 ? name : '').padEnd(column))}${line}`,
    );
  const rows = (name: string, texts: readonly string[]) =>
    texts.flatMap((text, index) => row(index === 0 ? name : '', text));
  const longest = Math.max(0, ...Object.keys(surfaces ?? {}).map((name) => name.length));
  return [
    paint(['bold', colour], headline),
    ...rows('why', reason === undefined ? (reasons ?? []) : [reason]),
    ...(pid === undefined ? [] : row('pid', `${pid}${version ? `, version ${version}` : ''}`)),
    ...(startedAt === undefined ? [] : row('since', since(startedAt, now))),
    ...row('data', dataDir),
    ...rows(
      'surfaces',
      Object.entries(surfaces ?? {}).map(([name, { url }]) => `${name.padEnd(longest)}  ${url}`),
    ),
    ...rows('plugins', pluginTexts(plugins ?? [])),
    ...(log ? row('log', logText(log)) : []),
    ...(transaction ? row('transaction', transactionText(transaction, instance.running)) : []),
    ...Object.entries(facts ?? {}).flatMap(([name, fact]) => row(name, factText(fact))),
    ...lastStopLines(instance, now).flatMap((text) => row('last stop', text)),
  ];
}

/** Those that run are counted; each of the others says what is with it. */
function pluginTexts(plugins: NonNullable<Instance['plugins']>): string[] {
  const others = plugins.filter(({ state }) => state !== 'started');
  const started = plugins.length - others.length;
  return [
    ...(started > 0 ? [`${started} started`] : []),
    ...others.map(({ name, state, reason }) => `${name} ${state}${reason ? `: ${reason}` : ''}`),
  ];
}

function logText({ seq, durableSeq, state, reason }: NonNullable<Instance['log']>): string {
  const waiting = seq - durableSeq;
  const frozen = state === undefined || state === 'open' ? '' : `, ${state}${reason ? `: ${reason}` : ''}`;
  return `newest record ${seq}, ${waiting === 0 ? 'all durable' : `${waiting} not durable yet`}${frozen}`;
}

function transactionText(
  { transID, who, deadline, secondsLeft }: RouterTransaction,
  running: boolean,
): string {
  const opened = `${transID} by ${who} is pending`;
  if (deadline === undefined) return `${opened}; its window is over, the revert is under way`;
  const at = timestamp(Date.parse(deadline));
  if (running) return `${opened}; reverts at ${at}, ${secondsLeft} s left`;
  return secondsLeft > 0
    ? `${opened}; the next start reverts it at ${at}, ${secondsLeft} s left`
    : `${opened}; its deadline was ${at}: the next start reverts it at once`;
}

/** What every fact may say of itself: the headline and the lines under it tell that already. */
const TOLD: ReadonlySet<string> = new Set(['ok', 'reason']);

/** A plugin's fact in words; lists inside are for `--json`. */
function factText(fact: unknown): string {
  if (!isObject(fact)) return shortValue(fact);
  const fields = Object.entries(fact).filter(([name, value]) => !TOLD.has(name) && !Array.isArray(value));
  return shortFields(Object.fromEntries(fields)).join(' ');
}

function lastStopLines({ lastStop, running, log }: Instance, now: number): string[] {
  if (!lastStop) return running || log ? [] : ['it has never run on this folder'];
  const { pid, startedAt, stoppedAt, reason } = lastStop;
  const began = `pid ${pid}, started ${timestamp(Date.parse(startedAt))}`;
  if (stoppedAt === undefined) return [`${reason}, without a word (${began})`];
  return [
    `${reason} at ${timestamp(Date.parse(stoppedAt))}, ${duration(now - Date.parse(stoppedAt))} ago (${began})`,
  ];
}

function since(startedAt: string, now: number): string {
  const at = Date.parse(startedAt);
  return `${timestamp(at)}, for ${duration(now - at)}`;
}
