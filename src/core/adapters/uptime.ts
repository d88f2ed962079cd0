import { defineToken, type Token } from '../plugin/token.ts';

/** One beat of somebody who is alive. */
export interface Heartbeat {
  readonly status: 'up' | 'down';
  readonly msg: string;
  /** Milliseconds, a non-negative integer. */
  readonly ping?: number | undefined;
}

/**
 * How a push ended. Only `delivered` counts: a 2xx whose body says `{"ok":true}`. `msg` is the monitor's own reason, which
 * nobody records later (O15).
 */
export type PushAnswer =
  | { readonly kind: 'delivered'; readonly status: number }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly msg?: string | undefined;
      /** The answer as it came, bounded, with the token taken out. */
      readonly body: string;
      /** As wget would have exited: 8, the server answered with an error. */
      readonly exitStatus: 8;
    }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** 4 for a network that failed or was too slow, 5 for TLS. */
      readonly exitStatus: 4 | 5;
    };

/** The monitor to which heartbeats are pushed, by the name of the one who sends them. */
export interface UptimeMonitor {
  /** For people: scheme, host and port; never a token. */
  readonly place: string;
  /**
   * Pushes one beat. The token is read at each push, from its file or secret.
   *
   * @param monitor e.g. `clickstack-watchdog`
   * @returns how it ended; a network that fails is an answer too
   * @throws HF_UPTIME_TOKEN there is no usable token for that monitor
   */
  push(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushAnswer>;
}

/** Provided by the plugin that speaks to an uptime monitor, or is one. */
export const UptimeMonitorToken: Token<UptimeMonitor> = defineToken('uptime.monitor');
