import type { LogRecord } from '../../kernel/log/record.ts';
import type { LifecycleContext } from './machine.ts';

/** A record of the runtime's own life in few words; an empty text is routine. */
export function describeLifecycle({ event, to }: LogRecord): string {
  const { pid, reason, version } = event as Readonly<Record<string, unknown>>;
  switch (event.type) {
    case 'BOOTED':
      return `runtime ${version} starts as process ${pid}${ended(to.context?.last)}`;
    case 'STOPPING':
      return `stops: ${reason}`;
    default:
      return ''; // init, and checkpoints
  }
}

function ended(last: unknown): string {
  const { pid, reason } = (last ?? {}) as Partial<NonNullable<LifecycleContext['last']>>;
  if (pid === undefined) return '';
  return reason === 'killed'
    ? `; the run before it (process ${pid}) was killed`
    : `; the run before it stopped: ${reason}`;
}
