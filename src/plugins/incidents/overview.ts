import { z } from 'zod';
import { ALERT_RAISE } from '../../core/contracts/alerts.ts';
import { textOf } from '../../core/host/history/answer-text.ts';
import { stoppedReportsOf } from '../../core/host/history/live-source.ts';
import { factsAt, firingAt, waitingAt } from '../../core/host/history/overview.ts';
import { Pace } from '../../core/host/history/pace.ts';
import { isFailure } from '../../core/host/history/select.ts';
import { markedRanges } from '../../core/host/integrity/damaged-ranges.ts';
import { HOST } from '../../core/host/lifecycle/records.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { fitting, type Line, recordLine } from './output.ts';
import { isoOf, parsePlace } from './places.ts';
import { line } from './search.ts';
import { momentOf } from './states.ts';
import { type Answer, defineTool, place, type Question } from './tool.ts';

/** So many of each kind are listed, the newest first. */
const MOST = 15;
/** The events by which Holdfast itself starts, stops and is repaired. */
const LIFE: ReadonlySet<string> = new Set(['BOOTED', 'STOPPING', 'REPAIRED']);

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
        firing: firingAt(moment, MOST).map(({ actor: _, since, ...alert }) => ({
          ...alert,
          since: isoOf(since ?? 0),
        })),
        raised: [...fitting(found.raised, MOST)],
        failures: [...fitting(lines(found.failures), MOST)],
        facts: factsAt(moment, then, stoppedReportsOf(services.declarations())),
        waiting: waitingAt(moment, then, MOST).map(({ since, ...one }) => ({ ...one, since: isoOf(since) })),
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
