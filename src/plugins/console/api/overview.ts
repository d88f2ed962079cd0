import { z } from 'zod';
import { textOf } from '../../../core/host/history/answer-text.ts';
import type { LogSource } from '../../../core/host/history/log-source.ts';
import { doingAt, factsAt, firingAt, waitingAt } from '../../../core/host/history/overview.ts';
import { firstSeqAt } from '../../../core/host/history/place.ts';
import type { LogQuestion } from '../../../core/host/history/questions.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { Registrations } from '../../../core/host/plugin/registrations.ts';
import { duration, shortFields } from '../../../core/host/terminal.ts';
import type { Moment } from '../../../core/kernel/actors/recover.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { isObject, type Json } from '../../../core/kernel/json.ts';
import type { HistoryReader } from '../../../core/kernel/log/event-log.ts';
import { at, get, momentSeq, status, time } from './endpoint.ts';
import { foldedPages } from './pages.ts';
import { standingOf, WORST_FIRST } from './standing.ts';

type Status = z.output<typeof status>;

const item = z.object({
  area: z.string(),
  name: z.string(),
  status,
  text: z.string(),
  since: time.optional(),
  actor: z.string().optional(),
  seq: z.int().optional().meta({ description: 'the record that says why' }),
  kind: z.enum(['alert', 'effect', 'log', 'plugin', 'surface', 'fact', 'page']),
  page: z.string().optional().meta({ description: 'the name of the page that says more' }),
  doing: z.string().optional().meta({ description: 'what is being done about it' }),
  due: time.optional().meta({ description: 'when it ends by itself' }),
});
type Item = z.output<typeof item>;

const MOST = 20;
const RATE_MS = 10 * 60_000;
const RUNTIME = 'Runtime';
/** The plugin of the alerts, and its page. */
const ALERTS = 'alerts';

export const overview = get({
  path: '/api/overview',
  summary: 'Whether everything is well, and if not, what and since when',
  query: z.strictObject({ at }),
  answer: z.object({
    at: z.int(),
    time,
    status,
    perMinute: z.number().meta({ description: 'records a minute over the ten minutes before' }),
    items: z.array(item),
  }),
  run: ({ query }, { ask, moments, services, source }) =>
    ask(async (question) => {
      const { log, signal } = question;
      const moment = await moments.at(log, momentSeq(question, query.at), signal);
      const live = query.at === undefined ? services : undefined;
      const then = live?.clock.now() ?? moment.at;
      const areaOf = areasOf(await source.declared());
      const items = [
        ...alertItems(moment, areaOf),
        ...waitingAt(moment, then, MOST).map(
          ({ actor, effect, since, record }): Item => ({
            kind: 'effect',
            area: areaOf(actor.split('.', 1)[0] ?? ''),
            name: effect,
            status: 'unknown',
            text: `waits for its outcome for ${duration(then - since)}`,
            doing: 'it was started, and its outcome is waited for',
            ...{ since, actor, seq: record },
          }),
        ),
        ...(live
          ? nowItems(live, areaOf)
          : [...(await pastItems(moment, source, areaOf)), ...(await pageItems(moment, source, question))]),
      ];
      const order = (one: Item) => WORST_FIRST.indexOf(one.status);
      return {
        at: moment.seq,
        time: then,
        status: worstOf(items, live !== undefined),
        perMinute: await rateAt(log, moment.seq, then),
        items: items.map((one) => withDoing(one, moment, then, services)).sort((a, b) => order(a) - order(b)),
      };
    }),
});

/** What its plugin does about a fact that is not as it should be. */
function withDoing(one: Item, moment: Moment, then: number, services: Services | undefined): Item {
  if (one.kind !== 'fact' || one.status === 'ok') return one;
  const owner = services?.declarations().health.find(({ name }) => name === one.name)?.owner;
  const doing = owner === undefined ? undefined : doingAt(moment, owner, then);
  return { ...one, ...(doing !== undefined && { doing }) };
}

/** Records a minute over the ten minutes before. */
async function rateAt(log: HistoryReader, seq: number, then: number): Promise<number> {
  const first = await firstSeqAt(log, then - RATE_MS);
  return Math.round((Math.max(0, seq - first + 1) / (RATE_MS / 60_000)) * 10) / 10;
}

/** Of the past only alerts and some facts are known: that nothing is wrong among them does not make it `ok`. */
function worstOf(items: readonly Item[], isNow: boolean): Status {
  const worst = WORST_FIRST.find((one) => items.some(({ status: of }) => of === one)) ?? 'unknown';
  return worst === 'ok' && !isNow ? 'unknown' : worst;
}

/** @returns the area of a plugin, by its name or by that of its fact */
function areasOf({ plugins, health }: Pick<Registrations, 'plugins' | 'health'>): (plugin: string) => string {
  const areas = new Map(plugins.map(({ name, about }) => [name, about?.area]));
  const owners = new Map(health.map(({ name, owner }) => [name, owner]));
  return (name) => areas.get(name) ?? areas.get(owners.get(name) ?? '') ?? RUNTIME;
}

function alertItems(moment: Moment, areaOf: (plugin: string) => string): Item[] {
  return firingAt(moment, MOST).map(({ alert, actor, since, record, severity, text, doing }) => ({
    kind: 'alert',
    area: areaOf(ALERTS),
    name: alert,
    status: severity === 'critical' ? 'failing' : 'degraded',
    ...{ text, doing },
    ...(since !== undefined && { since }),
    ...{ actor, seq: record },
  }));
}

function nowItems(services: Services, areaOf: (plugin: string) => string): Item[] {
  const { log, plugins, health, surfaces } = services;
  const { state, reason, seq, durableSeq } = log.status();
  const waiting = seq - durableSeq;
  return [
    {
      kind: 'log',
      area: RUNTIME,
      name: 'log',
      status: state === 'open' ? 'ok' : 'failing',
      text: textOf(
        `newest record ${seq}, ${waiting === 0 ? 'all durable' : `${waiting} not durable yet`}${reason ? `: ${reason}` : ''}`,
      ),
    },
    ...plugins().map(
      ({ name, state: of, reason: why }): Item => ({
        kind: 'plugin',
        area: areaOf(name),
        name: `plugin ${name}`,
        status: of === 'started' ? 'ok' : of === 'failed' ? 'degraded' : 'unknown',
        text: textOf(why ?? of),
      }),
    ),
    ...Object.entries(surfaces()).map(
      ([name, { url }]): Item => ({
        kind: 'surface',
        area: RUNTIME,
        name: textOf(name),
        status: 'ok',
        text: textOf(url),
      }),
    ),
    ...Object.entries(health()).map(([name, report]) => factItem(name, report, areaOf(name))),
  ];
}

async function pastItems(
  moment: Moment,
  source: LogSource,
  areaOf: (plugin: string) => string,
): Promise<Item[]> {
  const types = new Set(moment.actors.map(({ ref }) => parseActorRef(ref).type));
  const reports = await source.stoppedReports(types);
  return factsAt(moment, moment.at, reports).map(({ fact, report }) => factItem(fact, report, areaOf(fact)));
}

/** What the pages say that are folds over the log: of the past nothing else is known. */
async function pageItems(moment: Moment, source: LogSource, question: LogQuestion): Promise<Item[]> {
  const items: Item[] = [];
  for (const { name, title, area, sections } of await foldedPages(moment, source, question)) {
    const standing = name === ALERTS ? undefined : standingOf(sections); // those that fire are listed one by one
    if (standing) items.push({ kind: 'page', area, name: title, page: name, ...standing });
  }
  return items;
}

/** A fact of a health page: what says nothing of being wrong is well, as it is there. */
function factItem(name: string, report: Json, area: string): Item {
  const { ok, state, text, reason, fault, unknown, deadline } = isObject(report) ? report : {};
  const due = typeof deadline === 'string' ? Date.parse(deadline) : Number.NaN;
  const isUnknown = state === 'unknown' || (unknown !== undefined && unknown !== false);
  const words = [reason, fault, text].find((each) => typeof each === 'string' && each !== '');
  return {
    kind: 'fact',
    area,
    name: textOf(name),
    status: ok === false ? 'degraded' : isUnknown ? 'unknown' : 'ok',
    text: textOf(
      typeof words === 'string' ? words : isObject(report) ? shortFields(report).join(' ') : String(report),
      300,
    ),
    ...(!Number.isNaN(due) && { due }),
  };
}
