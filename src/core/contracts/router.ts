import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { defineToken, type Token } from './token.ts';

/** A router's whole network config: only ever read and written whole. Secret-bearing: never log or record it. */
export type NetworkConfig = { readonly [key: string]: unknown };

/** How the router answered a write. `unknown`: it may or may not have been applied; read again. */
export type SetAnswer =
  | { readonly kind: 'applied'; readonly ncid: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'refused'; readonly errors: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A router's config API, embedded or remote: it serves the active config whole, and takes whole configs. */
export interface RouterApi {
  /** @throws HF_ROUTER_UNREACHABLE */
  active(signal?: AbortSignal): Promise<NetworkConfig>;
  /**
   * Posts a whole config as an app save. It must have the ncid that it was read with. Fields that steer a write
   * (`transactionOp`, `transID`, `ignoreNcid`, `reqId`) are dropped, so nobody can bypass the check (R4).
   *
   * @param correlation under which the embedded router records the write
   * @param cause the seq of the record that requested the write, if a record did
   */
  set(config: NetworkConfig, correlation: string, signal?: AbortSignal, cause?: number): Promise<SetAnswer>;
  /** Whether the subscription to its channels is acknowledged now; absent where they are part of this process. */
  readonly isSubscribed?: () => boolean;
}

/** Provided by the router plugin that is enabled. */
export const RouterApiToken: Token<RouterApi> = defineToken('router.api');

/** The payload of the router's channels; a real daemon may send nothing at all. */
export interface RouterChange {
  ncid?: string | undefined;
  transID?: string | undefined;
  intf?: string | undefined;
  /** Epoch milliseconds. */
  at?: number | undefined;
  /** Whether the WAN is connected now. */
  up?: boolean | undefined;
}

const routerChange = z.object({
  ncid: z.string().optional(),
  transID: z.string().optional(),
  intf: z.string().optional(),
  at: z.number().optional(),
  up: z.boolean().optional(),
});

const channel = (name: string, summary: string): Topic<RouterChange> =>
  defineTopic(name, routerChange, summary);

/** The router's channels, by the names that its daemon gives them. Published after the config is saved. */
export const routerChannels = {
  ifaceChangeApplied: channel('router.iface_change_applied', 'An interface has been reapplied.'),
  changeApplied: channel('router.change_applied', 'A config has been applied.'),
  wanConnChanged: channel('router.wan_conn_changed', 'A WAN gained or lost its connection.'),
  wanStateChanged: channel('router.wan_state_changed', 'A WAN changed its state.'),
  apcChangeApplied: channel('router.apc_change_applied', 'The access-point controller took a change.'),
} as const;

/** The subscription to the router's channels is acknowledged (again); what was published before may be lost. */
export const routerConnected: Topic<Record<string, never>> = defineTopic(
  'router.connected',
  z.object({}),
  'The router can be heard (again); earlier events may have been missed.',
);
