/** What the runs of a data folder leave in its log: enough to read it without the machine. */
import { HIDDEN, type RecordWords, routineWords } from '../../kernel/actors/definition.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import { type ActorRef, parseActorRef } from '../../kernel/ids.ts';
import { isObject } from '../../kernel/json.ts';
import { CHECKPOINT, CLOCK, type LogRecord } from '../../kernel/log/record.ts';
import { describeClock } from '../clock/records.ts';
import { DATA_CHECK, describeDataCheck } from '../integrity/records.ts';
import { describeRetention, RETENTION } from '../retention/records.ts';
import type { LifecycleContext } from './machine.ts';

/** The one actor that remembers the runs of a data folder. */
export const HOST = CHECKPOINT.actor as ActorRef;

export const words: RecordWords = {
  [parseActorRef(HOST).type]: describeLifecycle,
  [CLOCK.type]: describeClock,
  [parseActorRef(DATA_CHECK).type]: describeDataCheck,
  [parseActorRef(RETENTION).type]: describeRetention,
  'runtime.certificate': describeCertificate,
};

/** What the actor of a data folder remembers; nothing before its first run. */
export function runsOf(state: Readonly<ActorState> | undefined): Partial<LifecycleContext> {
  return (state?.context ?? {}) as Partial<LifecycleContext>;
}

/** A record of the runtime's own life in few words; an empty text is routine. */
export function describeLifecycle(record: LogRecord): string | undefined {
  const { event, to } = record;
  const { pid, reason, version } = event as Readonly<Record<string, unknown>>;
  switch (event.type) {
    case 'BOOTED':
      return `runtime ${version} starts as process ${pid}${ended(to.context?.last)}`;
    case 'REPAIRED':
      return `the log was repaired: ${missingText(event.missing)}`;
    case 'STOPPING':
      return `stops: ${reason}`;
    default:
      return event.type === 'init' ? HIDDEN : routineWords(record, { CHECKPOINT: 'goes on' });
  }
}

function missingText(missing: unknown): string {
  const ranges = Array.isArray(missing) ? missing.filter(isObject) : [];
  if (ranges.length === 0) return 'no record is missing';
  return `missing are records ${ranges.map(({ from, to }) => `${from} to ${to}`).join(', ')}`;
}

function ended(last: unknown): string {
  const { pid, reason } = (last ?? {}) as Partial<NonNullable<LifecycleContext['last']>>;
  if (pid === undefined) return '';
  // A record has what its event changed: two runs that ended in one way have their reason once.
  if (reason === undefined) return `; the run before it (process ${pid}) ended as the one before that`;
  return reason === 'killed'
    ? `; the run before it (process ${pid}) was killed`
    : `; the run before it stopped: ${reason}`;
}

/** A record of what a surface's certificate is, in few words. */
export function describeCertificate({ event }: LogRecord): string {
  const { type, state, text } = event as Readonly<Record<string, unknown>>;
  if (type !== 'JUDGED') return HIDDEN;
  const verdict = state === 'ok' ? 'the certificate is good' : 'the certificate needs somebody';
  return `${verdict}: ${String(text)}`;
}
