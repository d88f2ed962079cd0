/** Describes records of the collector for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { finding } from '../../machines/collector/finding.ts';
import type { keyRotation } from '../../machines/collector/key-rotation.ts';

export const words: RecordWords = {
  'collector.key_rotation': describeRotationRecord,
  'collector.finding': describeFindingRecord,
};

export function describeRotationRecord({
  event,
  to,
  ignored,
}: RecordOf<typeof keyRotation>): string | undefined {
  if (ignored) return event.type === 'CONFIG_READ' ? HIDDEN : DEFAULT_WORDS;
  const state = String(to?.value ?? '');
  switch (event.type) {
    case 'ROTATE':
      return state === 'regenerating' ? `a rotation begins, ${event.maker}` : 'refused';
    case 'SIGHTINGS_READ':
      return state.endsWith('Pause') ? HIDDEN : `sightings of producers read, ${state}`;
    case 'CHECKED': {
      const found = event.checks
        .map(({ check, result }) => `${check} ${result.replace('_', ' ')}`)
        .join(', ');
      return `refresh checked: ${found}${state === 'external' ? '; it goes on' : ''}`;
    }
    case 'ADOPT':
      return to?.context?.adoption === undefined ? 'refused' : 'the key in use will be stored';
    case 'CONFIG_READ':
      return state === 'storing' ? 'the new key is adopted' : 'the config still names the old key';
    case 'STORED':
      return `stored in ${event.place}`;
    case 'BY_HAND':
      return 'a person must do this step';
    case 'EXTERNAL_DONE':
      return 'a person says that the external producers are updated';
    case 'RESUME':
      return 'a person resumes it';
    case 'MOVED':
      return `${event.producer} uses the new key`;
    default:
      // A pause is over.
      return state === 'refreshing' || state === 'external' ? HIDDEN : DEFAULT_WORDS;
  }
}

export function describeFindingRecord({ event, from, to }: RecordOf<typeof finding>): string | undefined {
  if (event.type === 'FOUND') return event.text;
  if (event.type === 'GONE') return from === to?.value ? HIDDEN : 'it is fixed';
  return event.type === 'init' ? HIDDEN : DEFAULT_WORDS;
}
