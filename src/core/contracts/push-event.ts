import type { Clock } from '../kernel/clock.ts';
import { isCoded } from '../kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../kernel/log/record.ts';
import type { Heartbeat, PushAnswer, UptimeMonitor } from './uptime.ts';

/** The exit status of wget for a file that it cannot read: there is no token. */
const NO_TOKEN = 3;

/** An answer as an event: `PUSHED`, `PUSH_REFUSED` with the body that nobody else records, or `PUSH_FAILED`. */
export function answerEvent(answer: PushAnswer, at: number): LogEvent {
  if (answer.kind === 'delivered') return { type: 'PUSHED', at, status: answer.status };
  const { exitStatus } = answer;
  if (answer.kind === 'failed') return { type: 'PUSH_FAILED', at, reason: answer.reason, exitStatus };
  const { status, msg, body } = answer;
  return { type: 'PUSH_REFUSED', at, status, ...(msg !== undefined && { msg }), body, exitStatus };
}

/**
 * Pushes one beat, and tells the machine that asked how it ended: see {@link answerEvent}.
 *
 * @param monitor undefined when nobody provides one
 * @param name the push monitor's
 */
export async function pushEvent(
  monitor: UptimeMonitor | undefined,
  name: string,
  beat: Heartbeat,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<LogEvent> {
  const failed = (reason: string): LogEvent => ({
    type: 'PUSH_FAILED',
    at: clock.now(),
    reason,
    exitStatus: NO_TOKEN,
  });
  if (!monitor) return failed('no plugin speaks to an uptime monitor');
  try {
    const answer = await monitor.push(name, beat, signal);
    return answerEvent(answer, clock.now());
  } catch (error) {
    if (!isCoded(error)) throw error;
    return failed(error.what.replace(/\.$/, ''));
  }
}
