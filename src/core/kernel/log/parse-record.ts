import { CoreError } from '../errors/core-error.ts';
import { isObject } from '../json.ts';
import { LATEST, type LogRecord, logRecordSchema, TIMER_CANCEL, TIMER_START } from './record.ts';

/** @throws HF_LOG_CORRUPT the body is not a record */
export function parseRecord(seq: number, body: string): LogRecord {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new CoreError('HF_LOG_CORRUPT', { seq, reason: 'its body is not JSON' }, { cause: error });
  }
  return checkRecord(seq, value, false);
}

/**
 * The same for a body that has been parsed.
 *
 * @param strict whether the whole schema is checked, field by field, for what comes from somebody else
 * @throws HF_LOG_CORRUPT it is not a record
 */
export function checkRecord(seq: number, value: unknown, strict: boolean): LogRecord {
  if (isRecordShaped(value) && !strict) return value;
  const { data, error } = logRecordSchema.safeParse(value);
  if (data && isRecordShaped(value)) return value;
  const issue = error?.issues[0];
  throw new CoreError('HF_LOG_CORRUPT', {
    seq,
    reason: issue ? `${issue.path.join('.')}: ${issue.message}` : 'not a record',
  });
}

/** A quick look for what our own writer wrote; the full schema explains what fails it. */
function isRecordShaped(value: unknown): value is LogRecord {
  const record = value as Partial<LogRecord> | null;
  return (
    Number.isSafeInteger(record?.seq) &&
    isInstant(record?.at) &&
    typeof record?.actor === 'string' &&
    typeof record.correlation === 'string' &&
    typeof record.event?.type === 'string' &&
    typeof record.machine === 'string' &&
    isState(record.to?.value) &&
    Array.isArray(record.effects) &&
    record.effects.every(isEffectShaped)
  );
}

function isState(value: unknown): boolean {
  return typeof value === 'string' || isObject(value);
}

/** Timers are what the log itself reads of effects. */
function isEffectShaped(effect: unknown): boolean {
  if (!isObject(effect) || typeof effect.type !== 'string') return false;
  if (effect.type !== TIMER_START && effect.type !== TIMER_CANCEL) return true;
  const { params } = effect;
  if (!isObject(params) || typeof params.timer !== 'string') return false;
  return effect.type === TIMER_CANCEL || isInstant(params.at);
}

function isInstant(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LATEST;
}
