/** Describes records of the collector for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { finding } from '../../machines/collector/finding.ts';
import type { ingestKey } from '../../machines/collector/ingest-key.ts';
import type { keyRotation } from '../../machines/collector/key-rotation.ts';
import type { probe } from '../../machines/collector/probe.ts';

export const words: RecordWords = {
  'collector.key_rotation': describeRotationRecord,
  'collector.ingest_key': describeIngestKeyRecord,
  'collector.finding': describeFindingRecord,
  'collector.probe': describeProbeRecord,
};

const ROTATION = {
  SIGHTINGS_READ: 'sightings of producers read',
  REGENERATED: 'a new key is made',
  ABANDON: 'a person gives it up',
  FORCE: 'a person forces the producers to restart',
  FORCED: 'the producers were restarted',
  RETIRED: 'the old key is retired',
  adoption: 'the new key was not adopted in time',
  retry: 'the key is stored again',
  byHand: 'nobody has stored the key by hand in time',
  sightings: 'producers are looked for again',
  rareSightings: 'producers are looked for again',
};

export function describeRotationRecord(record: RecordOf<typeof keyRotation>): string | undefined {
  const { event, to, ignored } = record;
  if (ignored) return event.type === 'CONFIG_READ' ? HIDDEN : DEFAULT_WORDS;
  const state = String(to?.value ?? '');
  switch (event.type) {
    case 'ROTATE':
      return state === 'regenerating' ? `a rotation begins, ${event.maker}` : 'refused';
    case 'SIGHTINGS_READ':
      return state.endsWith('Pause')
        ? routineWords(record, ROTATION)
        : `sightings of producers read, ${state}`;
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
      return routineWords(record, ROTATION);
  }
}

export function describeIngestKeyRecord({ event, ignored }: RecordOf<typeof ingestKey>): string | undefined {
  if (ignored) return DEFAULT_WORDS;
  switch (event.type) {
    case 'init':
      return HIDDEN;
    case 'RENEWED':
      return 'another key is in use on every host; the one before it still admits';
    case 'RETIRED':
      return 'the key before it is retired on every host';
    case 'HEARD':
      return `${event.from} knows of a change that this host missed`;
    default:
      return DEFAULT_WORDS;
  }
}

export function describeFindingRecord(record: RecordOf<typeof finding>): string | undefined {
  const { event, from, to } = record;
  if (event.type === 'FOUND') return event.text;
  if (event.type === 'GONE') return from === to?.value ? HIDDEN : 'it is fixed';
  return event.type === 'init' ? HIDDEN : routineWords(record, { patience: 'it has lasted' });
}

export function describeProbeRecord({ event }: RecordOf<typeof probe>): string | undefined {
  if (event.type !== 'PROBED') return HIDDEN;
  return event.end === 'arrived'
    ? "the probe's span arrived"
    : `the probe's span did not arrive: ${event.end}`;
}
