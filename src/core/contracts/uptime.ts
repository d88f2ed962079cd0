import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { defineToken, type Token } from './token.ts';

/** One beat of somebody who is alive. @public */
export interface Heartbeat {
  readonly status: 'up' | 'down';
  readonly msg: string;
  /** Milliseconds, a non-negative integer. */
  readonly ping?: number | undefined;
  /** Tests whether the monitor accepts a beat without counting one; a monitor that does not know this field counts it. */
  readonly probe?: boolean | undefined;
}

/**
 * How a push ended. Only `delivered` counts: a 2xx whose body says `{"ok":true}`. `msg` is the monitor's own reason, which
 * it records nowhere else (O15).
 *
 * @public
 */
export type PushAnswer =
  | {
      readonly kind: 'delivered';
      readonly status: number;
      /** The answer as it came, bounded, with the token taken out. */
      readonly body: string;
    }
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

/**
 * How a push ended, as the event by which machines of senders learn of it. A push without a usable token has the exit
 * status 3, as wget's when it cannot read a file.
 *
 * @public
 */
export type PushEvent =
  | { readonly type: 'PUSHED'; readonly at: number; readonly status: number }
  | {
      readonly type: 'PUSH_REFUSED';
      readonly at: number;
      readonly status: number;
      readonly msg?: string;
      readonly body: string;
      readonly exitStatus: 8;
    }
  | {
      readonly type: 'PUSH_FAILED';
      readonly at: number;
      readonly reason: string;
      readonly exitStatus: 3 | 4 | 5;
    };

/** Whether the token of a monitor can be read, and whether the secrets store's policy allows it. */
export interface TokenAccess {
  /** Where the token is, for a person. */
  readonly place: string;
  /** Why it can't be read; undefined when it can. */
  readonly fault?: string;
  /** `unknown` where no policy could be read, and `found` says why. */
  readonly policy: { readonly state: 'ok' | 'fail' | 'unknown'; readonly found: string };
}

/** The monitor to which heartbeats are pushed, by the name of the one who sends them. @public */
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
  /** The same for a machine: the result is an event, also where there is no usable token. */
  pushEvent(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushEvent>;
  /** Reads the token and the policy of the secrets store that it comes from; neither is returned. */
  access?(monitor: string): Promise<TokenAccess>;
}

/** Provided by the plugin that speaks to an uptime monitor, or is one. @public */
export const UptimeMonitorToken: Token<UptimeMonitor> = defineToken('uptime.monitor');

const trouble = z.object({
  /** Whose beats are missing, e.g. `clickstack-watchdog`. */
  monitor: z.string(),
  at: z.number(),
  /** Its checks failed, its push was not delivered, or it was killed. */
  outcome: z.enum(['unhealthy', 'undelivered', 'killed']),
  /** In words, without secrets. */
  text: z.string(),
});

/** Why a run of a sender pushed no beat, which the missing beat itself cannot say. */
export type RunTrouble = z.output<typeof trouble>;

/** Senders within this process publish here why they pushed no beat; the embedded monitor shows it beside the absence. */
export const runTrouble = defineTopic(
  'uptime.run_trouble',
  trouble,
  'A run pushed no beat, and this is why.',
);
