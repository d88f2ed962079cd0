import { z } from 'zod';
import { ALERT_RAISE } from '../../core/contracts/alerts.ts';
import { freeOf, textOf } from '../../core/host/history/answer-text.ts';
import { Pace } from '../../core/host/history/pace.ts';
import { isFailure } from '../../core/host/history/select.ts';
import { markedRanges } from '../../core/host/integrity/damaged-ranges.ts';
import { HOST } from '../../core/host/lifecycle/records.ts';
import type { Moment } from '../../core/kernel/actors/recover.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { AlertContext } from '../../machines/alerts/escalation.ts';
import { fitting, type Line, recordLine } from './output.ts';
import { isoOf, parsePlace } from './places.ts';
import { line } from './search.ts';
import { momentOf } from './states.ts';
import { type Answer, defineTool, place, type Question } from './tool.ts';

/** So many of each kind are listed, the newest first. */
const MOST = 15;
/** An effect that waits for longer than this is worth a look, milliseconds. */
const LONG_WAIT_MS = 60_000;
/** The events by which Holdfast itself starts, stops and is repaired. */
const LIFE: ReadonlySet<string> = new Set(['BOOTED', 'STOPPING', 'REPAIRED']);
/** The actors that the plugin `alerts` keeps, one a condition. */
const ALERT = 'alerts.alert';

const raised = z.object({
  record: z.int(),
  at: z.string(),
  alert: z.string(),
  severity: z.string(),
  text: z.string(),
  state: z.string().describe('firing, resolved, or event for what happened once'),
});

const output = z.object({
  at: z.string(),
  record: z.int().describe('the newest record at that time'),
  log: z.object({ first: z.int(), firstAt: z.string(), last: z.int(), lastAt: z.string() }),
  lookedBackTo: z.string().describe('alerts, failures and starts since this time are listed'),
  firing: z.array(
    z.object({
      alert: z.string(),
      since: z.string(),
      record: z.int(),
      severity: z.string(),
      text: z.string(),
    }),
  ),
  raised: z.array(raised).describe('alerts that were raised, newest first; one a condition'),
  failures: z.array(line).describe('effects that failed or were lost, and machines that threw, newest first'),
  facts: z
    .array(z.object({ fact: z.string(), report: z.unknown() }))
    .describe('e.g. an open transaction of the router'),
  waiting: z.array(z.object({ actor: z.string(), effect: z.string(), since: z.string(), record: z.int() })),
  starts: z.array(line).describe('starts and stops of Holdfast itself'),
  damaged: z.array(z.string()).describe('records that the newest check found damaged: do not rely on them'),
});

export const overview = defineTool({
  name: 'overview',
  title: 'What is wrong',
  description:
    'What is wrong now, or was wrong at a time: firing alerts, alerts raised before, failed effects, open transactions, ' +
    'effects that wait for long, restarts. Begin an investigation with it, once for now and once for the time of the ' +
    'incident. Next: explain_record or search_stories with what it names.',
  input: z.object({
    at: place.default('now'),
    within: z
      .string()
      .regex(/^\d{1,4}[smhd]$/)
      .default('24h')
      .describe('how far back alerts and failures are listed, e.g. 24h or 7d'),
  }),
  output,
  async answer({ at, within }, question): Promise<Answer<z.output<typeof output>>> {
    const { log, words, services, now } = question;
    const moment = await momentOf(question, at);
    const wanted = parsePlace(at, now);
    const then = 'at' in wanted ? Math.min(wanted.at, now) : moment.at;
    const span = parsePlace(within, then);
    const since = 'at' in span ? span.at : then;
    const found = await lookBack(question, moment.seq, since);
    await words.prepare([...found.failures, ...found.starts]);
    const lines = (records: readonly LogRecord[]): Line[] =>
      records.map((one) => recordLine(one, words.describe));
    const [first, last] = [log.firstSeq(), log.lastSeq()];
    return {
      fields: {
        at: isoOf(then),
        record: moment.seq,
        log: { first, firstAt: isoOf(log.record(first).at), last, lastAt: isoOf(log.record(last).at) },
        lookedBackTo: isoOf(Math.max(since, found.lookedBackTo)),
        firing: firingAt(moment),
        raised: [...fitting(found.raised, MOST)],
        failures: [...fitting(lines(found.failures), MOST)],
        facts: factsOf(moment, then, question),
        waiting: waitingAt(moment, then),
        starts: lines(found.starts),
        damaged: markedRanges(services.dataDir).map(({ from, to, reason }) =>
          textOf(`${from} to ${to}: ${reason}`),
        ),
      },
    };
  },
});

interface Found {
  readonly raised: z.output<typeof raised>[];
  readonly failures: LogRecord[];
  readonly starts: LogRecord[];
  /** Epoch milliseconds; the search may have ended before it reached the time that was wanted. */
  lookedBackTo: number;
}

/** Walks back from a record, until a time or until there is enough. */
async function lookBack({ log, signal, enoughAt }: Question, to: number, since: number): Promise<Found> {
  const pace = new Pace(signal);
  const found: Found = { raised: [], failures: [], starts: [], lookedBackTo: 0 };
  const conditions = new Set<string>();
  for await (const record of log.read({ to, reverse: true })) {
    if (record.at < since) break;
    if (performance.now() > enoughAt) {
      found.lookedBackTo = record.at;
      break;
    }
    await pace.next();
    if (isFailure(record) && found.failures.length < MOST) found.failures.push(record);
    if (isStartOrStop(record) && found.starts.length < MOST) found.starts.push(record);
    for (const one of raisedBy(record)) {
      const condition = JSON.stringify([one.alert, one.condition]);
      if (conditions.has(condition) || found.raised.length >= MOST) continue;
      conditions.add(condition);
      const { condition: _, ...alert } = one;
      found.raised.push(alert);
    }
  }
  return found;
}

function isStartOrStop({ actor, event }: LogRecord): boolean {
  return actor === HOST && LIFE.has(event.type);
}

/** The alerts that a record raised. `condition`: labels by which two alerts of one name differ. */
function raisedBy({ seq, at, effects }: LogRecord) {
  return effects.flatMap(({ type, params }) => {
    if (type !== ALERT_RAISE || !isObject(params)) return [];
    const { state = 'event', ...condition } = isObject(params.labels) ? params.labels : {};
    const { name, severity, text } = params;
    return [
      {
        record: seq,
        at: isoOf(at),
        alert: textOf(String(name)),
        severity: textOf(String(severity)),
        text: textOf(String(text)),
        state: textOf(String(state)),
        condition,
      },
    ];
  });
}

function firingAt({ actors }: Moment) {
  const firing = actors.filter(({ ref, value }) => parseActorRef(ref).type === ALERT && isObject(value));
  return firing.slice(0, MOST).map(({ ref, context, seq }) => {
    const { since, record, content } = context as Partial<AlertContext>;
    const { severity, text } = isObject(content) ? content : {};
    return {
      alert: textOf(parseActorRef(ref).key),
      since: isoOf(typeof since === 'number' ? since : 0),
      record: typeof record === 'number' ? record : seq,
      severity: textOf(String(severity ?? 'unknown')),
      text: textOf(String(text ?? '')),
    };
  });
}

/** What plugins report of such states, as they do of a stopped instance. */
function factsOf({ actors }: Moment, at: number, { services }: Question) {
  const states = new Map(actors.map((state) => [state.ref, state]));
  return services.declarations().health.flatMap(({ name, stopped }) => {
    const report = stopped?.(states, at);
    return report === undefined ? [] : [{ fact: textOf(name), report: freeOf(report) }];
  });
}

function waitingAt({ actors }: Moment, now: number) {
  const open = actors.flatMap(({ ref, effects }) =>
    Object.entries(effects).map(([id, { type, at }]) => ({ ref, type, at, record: Number.parseInt(id, 10) })),
  );
  return open
    .filter(({ at }) => now - at > LONG_WAIT_MS)
    .slice(0, MOST)
    .map(({ ref, type, at, record }) => ({
      actor: textOf(ref),
      effect: textOf(type),
      since: isoOf(at),
      record,
    }));
}
