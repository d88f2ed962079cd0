/** Context and events of the machine `alert.ts`, and its escalation: who is notified next while nobody acknowledges the alert. */
import { type ClockSet, moved, movedAll } from '../clock-set.ts';
import type { AlertContent, Notice } from './notice.ts';

/** A step of the escalation: whom to notify, and how long after the step before, while nobody has acknowledged. */
export interface Step {
  readonly to: readonly string[];
  readonly afterMs: number;
}

export interface Acknowledgement {
  readonly by: string;
  readonly at: number;
  readonly until: number;
  readonly note?: string;
}

/** Somebody raised the alert, and these are the steps that the configuration gives it. */
export interface Raised {
  readonly type: 'RAISED';
  readonly at: number;
  /** The record that raised it, so that an effect that runs twice after a crash counts once. */
  readonly cause: string;
  /** That record's number, by which the log tells why it was raised. */
  readonly record?: number;
  readonly kind: 'firing' | 'resolved' | 'event';
  /** Its source repeats it on purpose, as a reminder. */
  readonly again?: boolean;
  readonly content: AlertContent;
  readonly steps: readonly Step[];
  /** Between reminders after the last step, milliseconds. */
  readonly remindMs: number;
  /** Nobody is to be notified until then. */
  readonly silentUntil?: number;
}

export type AlertEvent =
  | Raised
  | {
      readonly type: 'ACKNOWLEDGE';
      readonly at: number;
      readonly by: string;
      readonly forMs: number;
      readonly note?: string;
    }
  /** The configuration gives it other steps, for example because a receiver has an address now. */
  | {
      readonly type: 'ESCALATION';
      readonly at: number;
      readonly steps: readonly Step[];
      readonly remindMs: number;
    }
  | { readonly type: 'SILENCE'; readonly at: number; readonly until: number }
  | { readonly type: 'UNSILENCE'; readonly at: number }
  | ClockSet
  /** A receiver has taken a notice of it. */
  | { readonly type: 'TAKEN'; readonly at: number; readonly receiver: string };

export interface AlertContext {
  readonly content?: AlertContent | undefined;
  readonly steps: readonly Step[];
  readonly remindMs: number;
  /** How many steps have been taken. */
  readonly stepsTaken: number;
  /** Receivers that are to be notified, and later of the end. */
  readonly informed: readonly string[];
  /** When each of them took its newest notice, epoch milliseconds. */
  readonly takenAt: Readonly<Record<string, number>>;
  /** The record that raised it last. */
  readonly record?: number | undefined;
  readonly since: number;
  /** The time of the newest event that set a delay. */
  readonly at: number;
  /** The causes of the newest raises. */
  readonly causes: readonly string[];
  /** How often it was raised since it began. */
  readonly count: number;
  readonly ack?: Acknowledgement | undefined;
  readonly silentUntil?: number | undefined;
}

export interface AlertArgs {
  readonly context: AlertContext;
  readonly event: AlertEvent;
}

/** Causes that are remembered, to recognise one that comes again. */
const CAUSES_KEPT = 16;

/** Milliseconds until the next step, or until the next reminder after the last step; a day where the value is no number. */
export function delayOf({ steps, stepsTaken, remindMs }: AlertContext): number {
  const ms = steps?.[stepsTaken]?.afterMs ?? remindMs;
  return Number.isFinite(ms) ? ms : DAY_MS;
}

const DAY_MS = 86_400_000;

/** The condition begins: the state of an earlier one is cleared. */
export function begin({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'RAISED') return {};
  const { at, content, steps, remindMs, silentUntil } = event;
  return {
    content,
    steps: listOf(steps),
    remindMs,
    causes: withCause(context, event.cause),
    at,
    since: at,
    stepsTaken: 0,
    informed: [],
    takenAt: {},
    record: event.record,
    count: event.kind === 'event' && context.content !== undefined ? context.count + 1 : 1,
    ack: undefined,
    silentUntil,
  };
}

/** Takes the next step: its receivers are among the informed from here on. */
export function advance({ context }: AlertArgs): Partial<AlertContext> {
  const { steps, stepsTaken, informed } = context;
  return {
    stepsTaken: Math.min(stepsTaken + 1, steps.length),
    informed: [...new Set([...informed, ...(steps[stepsTaken]?.to ?? [])])],
    ack: undefined,
    silentUntil: undefined,
  };
}

/** Receivers that would have been notified by now, had the steps been these from the beginning. */
export function newReceivers({ context, event }: AlertArgs): readonly string[] {
  if (event.type !== 'ESCALATION') return [];
  const { stepsTaken, informed } = context;
  const reached = listOf(event.steps)
    .slice(0, stepsTaken)
    .flatMap((step) => step?.to ?? []);
  return [...new Set(reached)].filter((name) => !informed.includes(name));
}

/** Continues the escalation with other steps. */
export function reroute(args: AlertArgs): Partial<AlertContext> {
  const { context, event } = args;
  if (event.type !== 'ESCALATION') return {};
  const { remindMs } = event;
  const steps = listOf(event.steps);
  const informed = [...context.informed, ...newReceivers(args)];
  return { steps, remindMs, informed, stepsTaken: Math.min(context.stepsTaken, steps.length) };
}

/** Takes over other steps while nobody is notified. An alert that nobody was notified of begins at the first step. */
export function rerouteSilently({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'ESCALATION') return {};
  const { remindMs } = event;
  const steps = listOf(event.steps);
  return {
    steps,
    remindMs,
    stepsTaken: context.informed.length === 0 ? 0 : Math.min(context.stepsTaken, steps.length),
  };
}

/** It was raised again: the newest content counts. */
export function repeat({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'RAISED') return {};
  return {
    content: event.content,
    causes: withCause(context, event.cause),
    count: context.count + 1,
    record: event.record,
  };
}

/** A receiver has taken a notice; only those that were informed since the condition began count. */
export function taken({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'TAKEN' || !context.informed.includes(event.receiver)) return {};
  return { takenAt: { ...context.takenAt, [event.receiver]: event.at } };
}

/** The clock was set: since when it fires, who acknowledged it until when, and who took what. */
export function followClock({ context, event }: AlertArgs): Partial<AlertContext> {
  if (event.type !== 'CLOCK_SET') return {};
  const { ack, takenAt } = context;
  return {
    ...moved(context, event.byMs, 'since', 'at', 'silentUntil'),
    takenAt: movedAll(takenAt, event.byMs),
    ...(ack && { ack: { ...ack, ...moved(ack, event.byMs, 'at', 'until') } }),
  };
}

const withCause = ({ causes }: AlertContext, cause: string) => [...causes, `${cause}`].slice(-CAUSES_KEPT);

/** Whether a one-time event deserves a notice: its text differs, or the last one is long ago. */
export function isNew({ context, event }: AlertArgs, sameMs: number): boolean {
  if (event.type !== 'RAISED') return false;
  return context.content?.text !== event.content.text || Math.abs(event.at - context.since) >= sameMs;
}

/**
 * The notice of a change and its receivers: those of the next step that it is firing; after the last step all informed ones,
 * as a reminder; of the end everybody who was informed of the beginning.
 */
export function noticeTo(
  { context, event }: AlertArgs,
  state: Notice['state'],
): { to: readonly string[]; notice: Notice } {
  const { steps, stepsTaken, informed, since } = context;
  const next = steps[stepsTaken];
  const content = (event.type === 'RAISED' ? event.content : context.content) ?? NOTHING;
  if (state === 'resolved') {
    // A receiver recognises the end by what it knows of the beginning: its severity and labels.
    const { severity, labels } = context.content ?? content;
    return { to: informed, notice: { ...content, severity, labels, state, since } };
  }
  if (state === 'event') return { to: next?.to ?? [], notice: { ...content, state, since } };
  if (next !== undefined) return { to: next.to, notice: { ...content, state: 'firing', since } };
  return { to: informed, notice: { ...content, state: 'reminder', since } };
}

const NOTHING = { name: '', severity: 'info', title: '', text: '', labels: {} } as const;

/** An imported log may hold anything in place of the steps. */
const listOf = (steps: readonly Step[]): readonly Step[] => (Array.isArray(steps) ? steps : []);
