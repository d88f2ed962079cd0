import type { Clock } from '../clock.ts';
import { isCoded } from '../errors/index.ts';
import type { LogEvent } from '../log/index.ts';
import type { Heartbeat, UptimeMonitor } from './uptime.ts';

/** The exit status of wget for a file that it cannot read: there is no token. */
const NO_TOKEN = 3;

/**
 * Pushes one beat, and tells the machine that asked how it ended: `PUSHED`, `PUSH_REFUSED` with the body that nobody
 * else records, or `PUSH_FAILED`.
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
  const failed = (reason: string, exitStatus: number): LogEvent => ({
    type: 'PUSH_FAILED',
    at: clock.now(),
    reason,
    exitStatus,
  });
  if (!monitor) return failed('no plugin speaks to an uptime monitor', NO_TOKEN);
  try {
    const answer = await monitor.push(name, beat, signal);
    const at = clock.now();
    if (answer.kind === 'delivered') return { type: 'PUSHED', at, status: answer.status };
    if (answer.kind === 'failed') return failed(answer.reason, answer.exitStatus);
    const { status, msg, body, exitStatus } = answer;
    return { type: 'PUSH_REFUSED', at, status, ...(msg !== undefined && { msg }), body, exitStatus };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return failed(error.what.replace(/\.$/, ''), NO_TOKEN);
  }
}
