import type { ConsolePage, PageMoment, PageSection, PageStatus } from '../../../core/contracts/console.ts';
import { keyOf, statesOf } from '../../../core/host/history/page-states.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import type { KeyContext } from '../../../machines/gateway/key-shapes.ts';
import type { RejectionsContext } from '../../../machines/gateway/rejections.ts';
import { BAD_OUTCOMES } from '../words.ts';
import { KEY_TYPE } from './keys.ts';

const REJECTIONS_TYPE = 'gateway.rejections';
/** Records that are read: a call is two, its decision and its end. */
const MOST_READ = 2_000;
/** Calls that are listed. */
const MOST_LISTED = 300;
/** Routes of one call that are named. */
const MOST_NAMED = 3;

const EVENTS = ['CALL', 'CALL_ENDED', 'REJECTED', 'effect.failed', 'effect.lost'];

type Kind = 'ok' | 'failed' | 'refused' | 'open';
const STATUS: Readonly<Record<Kind, PageStatus>> = {
  ok: 'ok',
  failed: 'failing',
  refused: 'degraded',
  open: 'unknown',
};

interface Call {
  readonly seq: number;
  readonly at: number;
  readonly key: string;
  readonly routes: readonly string[];
  readonly method: string;
  readonly tool: string | null;
  readonly kind: Kind;
  /** What became of it; the rule of a refusal. */
  readonly outcome: string;
  readonly count: number;
  readonly ms: number | null;
  readonly httpStatus: number | null;
}

/** The newest calls of every key at a moment, what became of each, and what was refused by which rule. */
export const callsPage: ConsolePage = {
  name: 'gateway-calls',
  title: 'Calls',
  inputs: [
    { name: 'route', title: 'Route', kind: 'text', example: 'pages' },
    { name: 'key', title: 'Key', kind: 'text', example: 'its alias or id' },
    {
      name: 'outcome',
      title: 'Outcome',
      kind: 'choice',
      choices: ['all', 'ok', 'failed', 'refused', 'open'],
      value: 'all',
    },
  ],
  data: async (moment) => {
    const { route, key, outcome } = moment.inputs;
    const keys = new Map(statesOf(moment, KEY_TYPE).map((state) => [state.ref, aliasOf(state)]));
    const wanted = [...keys].flatMap(([ref, alias]) =>
      key === undefined || key === alias || keyOf({ ref }) === key ? [ref] : [],
    );
    const strangers = key === undefined ? statesOf(moment, REJECTIONS_TYPE).map(({ ref }) => ref) : [];
    const { records, more } = await moment.records({
      actors: [...wanted, ...strangers],
      events: EVENTS,
      limit: MOST_READ,
    });
    const calls = callsOf(records, keys);
    const listed = calls.filter(
      (call) =>
        (route === undefined || call.routes.includes(route)) &&
        (outcome === undefined || outcome === 'all' || outcome === call.kind),
    );
    return [
      extent(calls, listed.length, more),
      table(listed.slice(0, MOST_LISTED)),
      ...refusals(calls, moment),
    ];
  },
};

function aliasOf(state: { readonly ref: string; readonly context: unknown }): string {
  const { terms } = state.context as Partial<KeyContext>;
  return terms?.alias ?? keyOf(state);
}

/** @param records newest first */
function callsOf(records: readonly LogRecord[], keys: ReadonlyMap<string, string>): Call[] {
  const ends = new Map(
    records.flatMap((one) => (one.outcome === undefined ? [] : [[one.outcome, one] as const])),
  );
  return records.flatMap((record) => {
    const { event, effects, seq } = record;
    if (event.type !== 'CALL' && event.type !== 'REJECTED') return [];
    const index = effects.findIndex(({ type }) => type === 'gateway.forward' || type === 'gateway.answer');
    const effect = effects[index];
    const params = isObject(effect?.params) ? effect.params : {};
    const end = ends.get(`${seq}.${index}`);
    const isRefused = effect?.type === 'gateway.answer';
    const ended = end?.event.type === 'CALL_ENDED' ? end.event : undefined;
    return {
      seq,
      at: typeof event.at === 'number' ? event.at : record.at,
      key: keys.get(record.actor) ?? 'no known key',
      routes: Array.isArray(event.routes) ? event.routes.map(String) : [],
      method: String(event.method ?? event.path ?? ''),
      tool: typeof event.tool === 'string' ? event.tool : null,
      ...(isRefused ? { kind: 'refused', outcome: String(params.rule) } : becameOf(end)),
      count: typeof event.count === 'number' ? event.count : 1,
      ms: !isRefused && typeof ended?.ms === 'number' ? ended.ms : null,
      httpStatus: typeof ended?.status === 'number' ? ended.status : null,
    } satisfies Call;
  });
}

function becameOf(end: LogRecord | undefined): Pick<Call, 'kind' | 'outcome'> {
  if (!end) return { kind: 'open', outcome: 'is under way' };
  const { event } = end;
  if (event.type === 'effect.lost') return { kind: 'failed', outcome: 'lost with the process' };
  const outcome = event.type === 'CALL_ENDED' ? String(event.outcome) : 'failed';
  return { kind: BAD_OUTCOMES.includes(outcome) ? 'failed' : 'ok', outcome: outcome.replaceAll('_', ' ') };
}

/** How far back the calls go: nothing older was looked at. */
function extent(calls: readonly Call[], listed: number, more: boolean): PageSection {
  const oldest = calls.at(-1);
  return {
    kind: 'facts',
    facts: [
      {
        label: more ? 'calls read, the newest' : 'calls',
        value: calls.length,
        ...(oldest && { since: oldest.at }),
      },
      { label: 'of them chosen', value: listed },
      ...(listed > MOST_LISTED ? [{ label: 'listed', value: MOST_LISTED }] : []),
    ],
  };
}

function table(calls: readonly Call[]): PageSection {
  const columns = [
    { name: 'at', title: 'When', format: 'time' },
    { name: 'by', title: 'Key' },
    { name: 'route', title: 'Route' },
    { name: 'method', title: 'Method' },
    { name: 'tool', title: 'Tool' },
    { name: 'outcome', title: 'Outcome' },
    { name: 'ms', title: 'Took', format: 'duration' },
    { name: 'httpStatus', title: 'HTTP', format: 'text' },
    { name: 'count', title: 'Times', format: 'number' },
  ] as const;
  const rows = calls.map(({ seq, at, key, routes, method, tool, kind, outcome, ms, httpStatus, count }) => ({
    seq,
    status: STATUS[kind],
    cells: {
      at,
      by: key,
      route: routes.length > MOST_NAMED ? `${routes.length} routes` : routes.join(', '),
      method,
      tool,
      outcome: kind === 'refused' ? `refused: ${outcome.replaceAll('_', ' ')}` : outcome,
      ms,
      httpStatus: httpStatus === null ? null : String(httpStatus),
      count,
    },
  }));
  return { kind: 'table', title: 'Calls', columns, rows };
}

/** What was refused: of the calls that were read, and of callers without a known key since the log began. */
function refusals(calls: readonly Call[], moment: PageMoment): PageSection[] {
  const read = new Map<string, number>();
  for (const { kind, outcome, count } of calls)
    if (kind === 'refused') read.set(outcome, (read.get(outcome) ?? 0) + count);
  const ever = new Map<string, number>();
  for (const { context } of statesOf(moment, REJECTIONS_TYPE)) {
    const { counts = {} } = context as Partial<RejectionsContext>;
    for (const [rule, count] of Object.entries(counts)) ever.set(rule, (ever.get(rule) ?? 0) + count);
  }
  const columns = [
    { name: 'rule', title: 'Rule' },
    { name: 'read', title: 'In the calls above', format: 'number' },
    { name: 'ever', title: 'Without a known key, ever', format: 'number' },
  ] as const;
  const rows = [...new Set([...read.keys(), ...ever.keys()])]
    .map((rule) => ({
      cells: { rule: rule.replaceAll('_', ' '), read: read.get(rule) ?? 0, ever: ever.get(rule) ?? null },
    }))
    .sort((a, b) => b.cells.read - a.cells.read || (b.cells.ever ?? 0) - (a.cells.ever ?? 0));
  return [{ kind: 'table', title: 'Refusals by rule', columns, rows }];
}
