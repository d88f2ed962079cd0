/** Describes records of alerts for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  type ProblemTest,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { alert } from '../../machines/alerts/alert.ts';
import type { alertOutbox } from '../../machines/alerts/outbox.ts';
import type { alertRule } from '../../machines/alerts/rule.ts';
import type { alertSilences } from '../../machines/alerts/silences.ts';
import type { alertsUnevaluated } from '../../machines/alerts/unevaluated.ts';

export const words: RecordWords = {
  'alerts.rule': describeRule,
  'alerts.alert': describeAlert,
  'alerts.outbox': describeOutbox,
  'alerts.unevaluated': describeUnevaluated,
  'alerts.silences': describeSilences,
};

export function describeRule(record: RecordOf<typeof alertRule>): string | undefined {
  if (isRoutineEvaluation(record)) return routineWords(record, RULE);
  const { event, to } = record;
  switch (event.type) {
    case 'EVALUATED': {
      const verdict = verdictOf(to.value);
      const found =
        event.value !== undefined
          ? `found ${event.value}: ${verdict}`
          : verdict === VERDICTS.noData
            ? 'found no data'
            : `found no data: ${verdict}`;
      return `${found}${event.finding === undefined ? '' : `, ${event.finding}`}`;
    }
    case 'EVALUATION_FAILED':
      return `could not be evaluated: ${event.reason}`;
    case 'DEFINE':
      return 'is defined, and evaluated at once';
    case 'REMOVE':
      return 'is no longer listed';
    default:
      return routineWords(record, RULE);
  }
}
describeRule.problem = problemEvents('EVALUATION_FAILED');

const RULE = {
  WATCH: 'is watched',
  EVALUATE: 'is evaluated',
  EVALUATED: 'was evaluated, and nothing changed',
  due: 'is evaluated',
};

/**
 * An evaluation that changes nothing.
 */
function isRoutineEvaluation({ from, to, effects, failed, event }: LogRecord): boolean {
  if (failed !== undefined || from === undefined || event.type === 'DEFINE') return false;
  const same = to.value === undefined || verdictOf(from) === verdictOf(to.value);
  return same && !effects.some(({ type }) => type === 'alerts.raise');
}

/** The verdict of a rule from its state: `{ firing: 'resting' }` is `firing`. */
export function verdictOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const [verdict = ''] = Object.keys(value);
  return VERDICTS[verdict] ?? verdict;
}

const VERDICTS: Readonly<Record<string, string>> = { noData: 'no data', unseen: 'never seen' };

export function describeUnevaluated(record: RecordOf<typeof alertsUnevaluated>): string | undefined {
  const { event, to } = record;
  switch (event.type) {
    case 'FAILED':
      return `${event.rule} cannot be evaluated: ${event.reason}`;
    case 'RECOVERED':
      return to.value === 'fine'
        ? 'every rule can be evaluated'
        : routineWords(record, { RECOVERED: 'a rule can be evaluated again' });
    default:
      return event.type.startsWith('xstate.after')
        ? 'rules could not be evaluated for an hour'
        : DEFAULT_WORDS;
  }
}
describeUnevaluated.problem = problemEvents('FAILED');

export function describeAlert(record: RecordOf<typeof alert>): string | undefined {
  const { event, effects } = record;
  const receivers = effects.flatMap(({ type, params }) =>
    type === 'alerts.notify' ? receiversOf(params) : [],
  );
  const to = receivers.length > 0 ? `; ${receivers.join(', ')} is notified` : '';
  switch (event.type) {
    case 'RAISED':
      return `${event.kind === 'event' ? 'happened' : event.kind}: ${event.content.text}${to}`;
    case 'ACKNOWLEDGE':
      return `is acknowledged by ${event.by}`;
    case 'SILENCE':
      return 'is silenced';
    case 'UNSILENCE':
      return `is no longer silenced${to}`;
    default:
      return to === '' ? routineWords(record, ALERT) : `nobody has acknowledged it${to}`;
  }
}
describeAlert.problem = {
  marks: ['"RAISED"'],
  is: ({ event }) => event.type === 'RAISED' && event.kind !== 'resolved',
} satisfies ProblemTest;

const ALERT = {
  TAKEN: 'a receiver has taken it',
  ESCALATION: 'is told to other receivers from now on',
  next: 'nobody has acknowledged it',
  acknowledged: 'the acknowledgement is over',
  silence: 'the silence is over',
};

function receiversOf(params: unknown): string[] {
  const to = typeof params === 'object' && params !== null && 'to' in params ? params.to : [];
  return Array.isArray(to) ? to.map(String) : [];
}

export function describeOutbox(record: RecordOf<typeof alertOutbox>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'QUEUE':
      return `will receive: ${event.item.notice.state} ${event.item.notice.title}`;
    case 'POSTED':
      return `has accepted it (${event.answer.status})`;
    case 'REFUSED':
      return `has not accepted it: ${event.reason}`;
    default:
      return routineWords(record, OUTBOX);
  }
}
describeOutbox.problem = problemEvents('REFUSED');

const OUTBOX = {
  CONFIGURE: 'is configured',
  REPOSTED: 'got again what fires',
  RETRY: 'is tried again',
  repeat: 'gets again what fires',
  batch: 'gets what was collected',
  backoff: 'is tried again',
};

export function describeSilences({ event }: RecordOf<typeof alertSilences>): string | undefined {
  if (event.type === 'ADD')
    return `${String(event.silence?.pattern)} is silenced by ${String(event.silence?.by)}`;
  return event.type === 'REMOVE' ? 'a silence is ended' : DEFAULT_WORDS;
}
