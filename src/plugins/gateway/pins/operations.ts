/** What a person sees of pinned tools, and accepts: the operations of `gateway tools list` and `gateway tools accept`. */
import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { ToolChange } from '../../../machines/gateway/tool-pins.ts';
import { GatewayError } from '../errors.ts';
import { toolPinsActor, toolsAccepted } from './actor.ts';

export const LIST_PATH = '/gateway/tools';
export const ACCEPT_PATH = '/gateway/tools/accept';
const REPLY_TIMEOUT_MS = 15_000;
const nothing = z.strictObject({});
const accept = z.strictObject({ route: z.string().min(1).max(64), by: z.string().min(1).max(64) });

/** The tools of one route as they were accepted. */
export interface PinnedView {
  readonly route: string;
  readonly policy: string;
  /** Number of accepted tools, and who accepted them when (ISO 8601). */
  readonly tools: number;
  readonly by: string;
  readonly at: string;
  /** What the upstream has otherwise now, and since when. */
  readonly pending?: { readonly at: string; readonly changes: readonly ToolChange[] };
}

interface PinServices {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock' | 'pendingReplies'>;
}

/** Serves both on the control socket. */
export function servePinOperations(surface: HttpSurface, { services }: PinServices): void {
  const { actors, bus, clock, pendingReplies } = services;
  serveOperation(surface, LIST_PATH, nothing, () => ({
    routes: actors.list(toolPinsActor).flatMap(({ key, context }): PinnedView[] => {
      const { accepted, pending, policy } = context;
      if (!accepted) return [];
      const { tools, by, at } = accepted;
      return [
        {
          route: key,
          policy,
          tools: Object.keys(tools).length,
          by,
          at: new Date(at).toISOString(),
          ...(pending && {
            pending: { at: new Date(pending.at).toISOString(), changes: pending.changes },
          }),
        },
      ];
    }),
  }));
  serveOperation(surface, ACCEPT_PATH, accept, async ({ route, by }, { correlation }) => {
    const answer = pendingReplies.open(correlation, REPLY_TIMEOUT_MS);
    const { digest } = actors.get(toolPinsActor, route)?.context.pending ?? {};
    const seen = digest === undefined ? {} : { digest };
    bus.publish(toolsAccepted, { route, at: clock.now(), by, ...seen }, { correlation });
    const { status, body } = await answer;
    const fields = isObject(body) ? body : {};
    if (status === 200) return fields;
    throw new GatewayError('HF_GATEWAY_TOOLS', { reason: String(fields.reason) });
  });
}
