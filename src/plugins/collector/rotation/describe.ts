import type { LogRecord } from '../../../core/kernel/log/record.ts';

/** A record of the rotation in an operator's words; total, for any record may come. */
export function describeRotationRecord({ event, to, ignored }: LogRecord): string | undefined {
  if (ignored) return event.type === 'CONFIG_READ' ? '' : undefined;
  const state = String(to?.value ?? '');
  switch (event.type) {
    case 'ROTATE':
      return state === 'regenerating' ? `a rotation begins, ${String(event.maker)}` : 'refused';
    case 'LOOKED':
      return state.endsWith('Pause') ? '' : `producers looked at, ${state}`;
    case 'CONFIG_READ':
      return state === 'storing' ? 'the new key is adopted' : 'the old key is still the one';
    case 'STORED':
      return `stored in ${String(event.place)}`;
    case 'BY_HAND':
      return 'a person must do this step';
    case 'EXTERNAL_DONE':
      return 'a person says that the producers outside are updated';
    case 'RESUME':
      return 'a person takes it up again';
    case 'MOVED':
      return `${String(event.producer)} uses the new key`;
    default:
      // A look that is made again because its time has come.
      return state === 'refreshing' || state === 'external' ? '' : undefined;
  }
}
