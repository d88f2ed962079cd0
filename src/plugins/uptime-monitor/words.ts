/** Describes records of monitors for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type ProblemTest,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';

export const words: RecordWords = {
  'uptime-monitor.monitor': describeMonitorRecord,
};

export function describeMonitorRecord(record: LogRecord): string | undefined {
  const { event, from, effects } = record;
  const text = (field: string) => String(event[field] ?? '?');
  const again = effects.some(({ type }) => type === 'alerts.raise');
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return HIDDEN;
    case 'BEAT':
      if (from === 'paused') return 'beats, and is paused';
      if (event.up !== true) return `says that it is down: ${text('msg')}`;
      return from === 'up' ? routineWords(record, { BEAT: 'beats' }) : again ? 'beats again' : 'beats';
    case 'WATCH':
      return routineWords(record, { WATCH: 'is watched' });
    case 'TROUBLE': {
      const trouble = event.trouble as { outcome?: unknown; text?: unknown } | undefined;
      return `sent no beat, ${String(trouble?.outcome)}: ${String(trouble?.text)}`;
    }
    case 'ACK':
      return `is acknowledged by ${text('by')}`;
    case 'PAUSE':
      return `is paused by ${text('by')}`;
    case 'UNPAUSE':
      return `is watched again, says ${text('by')}`;
    case 'RELEASE':
      return 'is no longer listed';
  }
  switch (delayOf(event.type)) {
    case 'overdue':
      return 'sent no beat when one was due';
    case 'lost':
      return 'is DOWN';
    case 'reminder':
    case 'acknowledged':
      return 'is still DOWN';
    default:
      return DEFAULT_WORDS;
  }
}
describeMonitorRecord.problem = {
  marks: ['"xstate.after.lost', '"TROUBLE"', '"up":false'],
  is: ({ event }) => event.type === 'TROUBLE' || event.up === false || delayOf(event.type) === 'lost',
} satisfies ProblemTest;
