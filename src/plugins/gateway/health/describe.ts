import type { LogRecord } from '../../../core/kernel/log/record.ts';
import type { RouteHealthEvent } from '../../../machines/gateway/route-health.ts';

/** A record of a route's health in an operator's words, for `holdfast log`. */
export function describeHealthRecord({ event: recorded, to }: LogRecord): string | undefined {
  const event = recorded as unknown as RouteHealthEvent;
  switch (event.type) {
    case 'PROBED': {
      const { reason, tools } = event;
      if (event.found === 'ok') return `is healthy${tools === undefined ? '' : `, ${tools} tools`}`;
      return `is ${String(to.value)}: its upstream ${reason}`;
    }
    case 'RESET':
      return `is looked at anew: ${event.reason}`;
    default:
      return undefined;
  }
}
