import type { AlertArgs, AlertContext, Notice } from './alert.ts';

/** Causes that are remembered, to recognise one that comes again. */
const CAUSES_KEPT = 16;

/** Until the next rung, and after the last one until the next reminder. Without a time it would go round for ever. */
export function delayOf({ steps, climbed, remindMs }: AlertContext): number {
  const ms = steps?.[climbed]?.afterMs ?? remindMs;
  return Number.isFinite(ms) ? ms : DAY_MS;
}

const DAY_MS = 86_400_000;

/** It begins: nothing is left of what was before. */
export function begin({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'RAISED') return {};
  const { at, told, steps, remindMs, silentUntil } = event;
  return {
    told,
    steps: Array.isArray(steps) ? steps : [],
    remindMs,
    causes: known(context, event.cause),
    at,
    since: at,
    climbed: 0,
    informed: [],
    count: event.kind === 'event' && context.told !== undefined ? context.count + 1 : 1,
    ack: undefined,
    silentUntil,
  };
}

/** Whoever is told now knows of it from here on. */
export function climb({ context }: AlertArgs): Partial<AlertContext> {
  const { steps, climbed, informed } = context;
  return {
    climbed: Math.min(climbed + 1, steps.length),
    informed: [...new Set([...informed, ...(steps[climbed]?.to ?? [])])],
    ack: undefined,
    silentUntil: undefined,
  };
}

/** Who would know by now, had the rungs been these from the beginning. */
export function newcomers({ context, event }: AlertArgs): readonly string[] {
  if (event.type !== 'LADDER') return [];
  const { climbed, informed } = context;
  const reached = event.steps.slice(0, climbed).flatMap((step) => step?.to ?? []);
  return [...new Set(reached)].filter((name) => !informed.includes(name));
}

/** Other rungs from here on. */
export function regrade(args: AlertArgs): Partial<AlertContext> {
  const { context, event } = args;
  if (event.type !== 'LADDER') return {};
  const { steps, remindMs } = event;
  const informed = [...context.informed, ...newcomers(args)];
  return { steps, remindMs, informed, climbed: Math.min(context.climbed, steps.length) };
}

/** The same while nobody is to be told just now: whoever has heard nothing yet begins at the first. */
export function regradeQuietly({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'LADDER') return {};
  const { steps, remindMs } = event;
  return {
    steps,
    remindMs,
    climbed: context.informed.length === 0 ? 0 : Math.min(context.climbed, steps.length),
  };
}

/** It is said again: the newest words count. */
export function repeat({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'RAISED') return {};
  return { told: event.told, causes: known(context, event.cause), count: context.count + 1 };
}

const known = ({ causes }: AlertContext, cause: string) => [...causes, `${cause}`].slice(-CAUSES_KEPT);

/** Whether a one-time event is worth telling: its words are others, or it is long ago. */
export function isNew({ context, event }: AlertArgs, sameMs: number): boolean {
  if (event.type !== 'RAISED') return false;
  return context.told?.text !== event.told.text || Math.abs(event.at - context.since) >= sameMs;
}

/**
 * What is told, and to whom: the next rung hears that it is firing, and when all rungs have heard they are reminded. The end
 * is told to everybody who heard of the beginning.
 */
export function noticeTo(
  { context, event }: AlertArgs,
  state: Notice['state'],
): { to: readonly string[]; notice: Notice } {
  const { steps, climbed, informed, since } = context;
  const next = steps[climbed];
  const told = (event.type === 'RAISED' ? event.told : context.told) ?? NOTHING;
  if (state === 'resolved') return { to: informed, notice: { ...told, state, since } };
  if (state === 'event') return { to: next?.to ?? [], notice: { ...told, state, since } };
  if (next !== undefined) return { to: next.to, notice: { ...told, state: 'firing', since } };
  return { to: informed, notice: { ...told, state: 'reminder', since } };
}

const NOTHING = { name: '', severity: 'info', title: '', text: '', labels: {} } as const;
