import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { defineToken, type Token } from './token.ts';

/**
 * A router's whole network config: only ever read and written whole. Secret-bearing: never log or record it.
 *
 * @experimental
 */
export type NetworkConfig = { readonly [key: string]: unknown };

/** How the router answered a write. `unknown`: it may or may not have been applied; read again. @experimental */
export type SetAnswer =
  | { readonly kind: 'applied'; readonly ncid: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'refused'; readonly errors: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string };

/** How the router answered a request to apply its current config again. `pending`: a transaction is, so nothing was asked. */
export type ReapplyAnswer =
  | { readonly kind: 'applied' }
  | Exclude<SetAnswer, { readonly kind: 'applied' | 'conflict' }>;

/** One interface as the router serves it: what its config says, and what its kernel has. */
export interface InterfaceView {
  /** Its entry in the active config. May hold secrets: never log or record it. */
  readonly config: { readonly [key: string]: unknown };
  /** Its live state, of which routers report different fields. */
  readonly state: {
    /** Every IPv6 address of the link with its prefix length, link-local ones included; null where the router cannot tell. */
    readonly ip6: readonly string[] | null;
    readonly [key: string]: unknown;
  };
}

/** Proof of which writer came later, of work that one host of a cluster does at a time (docs/cluster.md). @experimental */
export interface WriteFence {
  readonly singleton: string;
  /** As the effect got it that writes. */
  readonly token: string;
}

/** What a write comes from. @experimental */
export interface WriteOrigin {
  /** The seq of the record that requested the write, if a record did. */
  readonly cause?: number;
  /** An embedded router refuses one whose token is older than another of that singleton that it has seen; other routers do not look. */
  readonly fence?: WriteFence;
}

/**
 * A router's config API, embedded or remote: it serves the active config whole, and takes whole configs.
 *
 * @experimental
 */
export interface RouterApi {
  /** @throws HF_ROUTER_UNREACHABLE */
  active(signal?: AbortSignal): Promise<NetworkConfig>;
  /**
   * Posts a whole config as an app save. It must have the ncid that it was read with. Fields that steer a write
   * (`transactionOp`, `transID`, `ignoreNcid`, `reqId`) are dropped, so nobody can bypass the check (R4).
   *
   * @param correlation under which the embedded router records the write
   */
  set(
    config: NetworkConfig,
    correlation: string,
    signal?: AbortSignal,
    origin?: WriteOrigin,
  ): Promise<SetAnswer>;
  /**
   * Reads one interface, `GET /v1/config/interfaces/<intf>`.
   *
   * @returns undefined when the router has no such interface, or does not serve this route (404)
   * @throws HF_ROUTER_UNREACHABLE
   */
  interfaceState(intf: string, signal?: AbortSignal): Promise<InterfaceView | undefined>;
  /**
   * Applies the current config again, `POST /v1/config/apply_current_config`. A pending transaction is never joined: the
   * router is asked first, because some daemons would commit it.
   *
   * @param correlation under which the embedded router records the request
   */
  reapply(correlation: string, signal?: AbortSignal, origin?: WriteOrigin): Promise<ReapplyAnswer>;
  /** Base URL of a router elsewhere; absent where the router is part of this process. */
  readonly place?: string;
  /** Whether the subscription to its channels is acknowledged now; absent where they are part of this process. */
  readonly isSubscribed?: () => boolean;
}

/** Provided by the router plugin that is enabled. @experimental */
export const RouterApiToken: Token<RouterApi> = defineToken('router.api');

const routerChange = z.object({
  ncid: z.string().optional(),
  transID: z.string().optional(),
  intf: z.string().optional(),
  /** Epoch milliseconds. */
  at: z.number().optional(),
  /** Whether the WAN is connected now. */
  up: z.boolean().optional(),
});

/** The payload of the router's channels; a real daemon may send nothing at all. @experimental */
export type RouterChange = z.output<typeof routerChange>;

const channel = (name: string, summary: string): Topic<RouterChange> =>
  defineTopic(name, routerChange, summary);

/**
 * The router's channels, by the names that its daemon gives them. Published after the config is saved.
 *
 * @experimental
 */
export const routerChannels = {
  ifaceChangeApplied: channel('router.iface_change_applied', 'An interface has been reapplied.'),
  changeApplied: channel('router.change_applied', 'A config has been applied.'),
  wanConnChanged: channel('router.wan_conn_changed', 'A WAN gained or lost its connection.'),
  wanStateChanged: channel('router.wan_state_changed', 'A WAN changed its state.'),
  apcChangeApplied: channel('router.apc_change_applied', 'The access-point controller took a change.'),
} as const;

/**
 * The subscription to the router's channels is acknowledged (again); what was published before may be lost.
 *
 * @experimental
 */
export const routerConnected = defineTopic(
  'router.connected',
  z.object({}),
  'The router can be heard (again); earlier events may have been missed.',
);

const recovery = z.object({
  /** Why whoever compares something with the router's config reads it again. */
  reason: z.enum(['answers again', 'restarted', 'missed a change']),
  /** How long its API gave no usable answer, milliseconds, where it had been away. */
  downMs: z.number().optional(),
});
export type RouterRecovered = z.output<typeof recovery>;

/**
 * The router's API answers again after an outage, its daemon has restarted, or its config is another one and no event
 * said so. A restart publishes nothing on the channels.
 */
export const routerApiRecovered = defineTopic(
  'router.api_recovered',
  recovery,
  'The router answers again, has restarted, or changed unnoticed; its config is to be read again.',
);
