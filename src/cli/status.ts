import type { CommandContext, CommandRun } from '../core/host/plugin/command.ts';
import type { StoppedReports } from '../core/host/plugin/definition.ts';
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
import { type Instance, inspectInstance, type LastRun, type LogState, type PluginState } from './instance.ts';

/** `holdfast status`: how the instance on a data folder is, or how its last run ended (R29, R40). */
export const showStatus: CommandRun = async (_args, _flags, context) => {
  const { dataDir, json, print, signal, terminal } = context;
  const now = Date.now();
  const instance = await inspectInstance(dataDir, { now, signal, reports: reportsOf(context) });
  // Facts stand beside the other fields, as on the health page: `jq .transaction`.
  if (json) print(JSON.stringify({ ...instance.facts, ...instance }, null, 2));
  else for (const line of instanceLines(instance, now, terminal)) print(line);
  return instance.state === 'ok' ? OK : FAILED;
};

/** What plugins report of a stopped instance. Without the plugins the rest is shown, with a note. */
export function reportsOf({
  stoppedReports,
  note,
}: Pick<CommandContext, 'stoppedReports' | 'note'>): (types: Iterable<string>) => Promise<StoppedReports> {
  return async (types) => {
    try {
      return await stoppedReports(types);
    } catch (error) {
      note(`The reports of the plugins are missing. ${error instanceof Error ? error.message : error}`);
      return {};
    }
  };
}

const HEADLINES: Readonly<Record<Instance['state'], readonly [text: string, colour: Colour]>> = {
  ok: ['Holdfast is running and healthy.', 'green'],
  degraded: ['Holdfast is running, but degraded.', 'yellow'],
  failing: ['Holdfast is running, but its log accepts no records, so it decides nothing.', 'red'],
  starting: ['Holdfast is starting or stopping.', 'yellow'],
  unreachable: ['The status of Holdfast cannot be read.', 'red'],
  stopped: ['Holdfast is not running here.', 'red'],
};

/** Facts whose own name would stand for something else among the lines: `data` is the folder. */
const LABELS: Readonly<Record<string, string>> = { data: 'data check' };

/** An instance in lines for a person. @param now epoch milliseconds */
function instanceLines(instance: Instance, now: number, terminal: Terminal): string[] {
  const { paint, interactive, columns } = terminal;
  const { state, dataDir, pid, startedAt, version, surfaces = {}, plugins = [] } = instance;
  const { log, facts = {}, reason, reasons = [] } = instance;
  const [headline, colour] = HEADLINES[state];
  const column = Math.max(12, ...Object.keys(facts).map((name) => name.length + 1));
  // Output that is not a terminal gets whole lines, so that it can be searched.
  const width = interactive ? columns - column - 2 : Number.POSITIVE_INFINITY;
  const row = (name: string, text: string) =>
    wrapped(plainText(text), width).map(
      (line, index) => `  ${paint('dim', (index === 0 ? name : '').padEnd(column))}${line}`,
    );
  const rows = (name: string, texts: readonly string[]) =>
    texts.flatMap((text, index) => row(index === 0 ? name : '', text));
  const longest = Math.max(0, ...Object.keys(surfaces).map((name) => name.length));
  return [
    paint(['bold', colour], headline),
    ...rows('why', reason === undefined ? reasons : [reason]),
    ...(pid === undefined ? [] : row('pid', `${pid}${version ? `, version ${version}` : ''}`)),
    ...(startedAt === undefined ? [] : row('since', sinceText(startedAt, now))),
    ...row('data', dataDir),
    ...rows(
      'surfaces',
      Object.entries(surfaces).map(([name, { url }]) => `${name.padEnd(longest)}  ${url}`),
    ),
    ...rows('plugins', pluginTexts(plugins)),
    ...(log ? row('log', logText(log)) : []),
    ...Object.entries(facts).flatMap(([name, fact]) => row(LABELS[name] ?? name, factText(fact))),
    ...row('last stop', lastStopText(instance, now)),
  ];
}

/** Those that run are counted; each of the others is listed with its reason. */
function pluginTexts(plugins: readonly PluginState[]): string[] {
  const others = plugins.filter(({ state }) => state !== 'started');
  const started = plugins.length - others.length;
  return [
    ...(started > 0 ? [`${started} started`] : []),
    ...others.map(({ name, state, reason }) => `${name} ${state}${reason ? `: ${reason}` : ''}`),
  ];
}

function logText({ seq, durableSeq, state, reason }: LogState): string {
  const waiting = seq - durableSeq;
  const frozen = state === undefined || state === 'open' ? '' : `, ${state}${reason ? `: ${reason}` : ''}`;
  return `newest record ${seq}, ${waiting === 0 ? 'all durable' : `${waiting} not durable yet`}${frozen}`;
}

/** Fields that the headline and the lines under it show already. */
const SHOWN_ABOVE: ReadonlySet<string> = new Set(['ok', 'reason']);

/** A plugin's fact: its own `text`, else its fields; lists inside are for `--json`. */
function factText(fact: unknown): string {
  if (!isObject(fact)) return shortValue(fact);
  if (typeof fact.text === 'string') return fact.text;
  const fields = Object.entries(fact).filter(
    ([name, value]) => !SHOWN_ABOVE.has(name) && !Array.isArray(value),
  );
  return shortFields(Object.fromEntries(fields)).join(' ');
}

function lastStopText({ lastStop, state, log, reason }: Instance, now: number): string {
  if (lastStop) return stopText(lastStop, now);
  return state === 'stopped' && !log && reason === undefined ? 'it has never run on this folder' : '';
}

function stopText({ pid, startedAt, stoppedAt, reason }: LastRun, now: number): string {
  const began = `pid ${pid}, started ${timestamp(Date.parse(startedAt))}`;
  if (stoppedAt === undefined) return `${reason}; it recorded no stop (${began})`;
  const at = Date.parse(stoppedAt);
  return `${reason} at ${timestamp(at)}${agoText(now - at)} (${began})`;
}

function sinceText(startedAt: string, now: number): string {
  const at = Date.parse(startedAt);
  return now < at ? timestamp(at) : `${timestamp(at)}, for ${duration(now - at)}`;
}

/** A time ahead was noted by a clock that has been set back: how long ago it was cannot be said. */
function agoText(ms: number): string {
  return ms < 0 ? '' : `, ${duration(ms)} ago`;
}
