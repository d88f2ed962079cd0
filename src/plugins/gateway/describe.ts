import type { LogRecord } from '../../core/log/index.ts';

/** A record of the gateway in an operator's words, for `holdfast log`. */
export function describeGatewayRecord({ event, effects }: LogRecord): string | undefined {
  switch (event.type) {
    case 'CALL': {
      const { routes, method, tool } = event as unknown as {
        routes: string[];
        method: string;
        tool?: string;
      };
      const what = `${routes.join(',')} ${method}${tool === undefined ? '' : ` ${tool}`}`;
      const decision = effects.find(({ type }) => type.startsWith('gateway.'));
      if (decision?.type === 'gateway.forward') return `${what}: admitted`;
      const { rule } = (decision?.params ?? {}) as { rule?: string };
      return `${what}: refused, ${rule}`;
    }
    case 'CALL_ENDED': {
      const { outcome, status, ms } = event as unknown as { outcome: string; status?: number; ms: number };
      return `${outcome}${status === undefined ? '' : ` ${status}`} in ${ms} ms`;
    }
    case 'TURNED_AWAY': {
      const { rule, source } = event as unknown as { rule: string; source: string };
      return `${source} turned away, ${rule}`;
    }
    default:
      return undefined;
  }
}
