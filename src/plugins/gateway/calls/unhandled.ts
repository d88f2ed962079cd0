import type { Unhandled } from '../../../core/http/index.ts';
import { identify } from '../keys/caller.ts';
import { takeMisplaced } from '../keys/misplaced.ts';
import type { GatewayParts } from './parts.ts';
import type { TurnedAway } from './topics.ts';
import { NOWHERE, whoseCall } from './trace.ts';

/** Rules that somebody should hear of by themselves. */
const TOLD: ReadonlySet<string> = new Set(['master_key_presented', 'key_only_in_authorization']);
const ENDPOINT = /^\/(?:([^/]+)\/mcp|mcp\/(?:sse)?)$/;

/**
 * A call that ended before its handler: too large, too slow, from a foreign page, by another method. Its head was read,
 * so it is a call with one span, and what it brings is searched for keys like any other's; what never became a request
 * is a counter of the surface.
 */
export function endUnhandled(parts: GatewayParts, request: Unhandled): void {
  const { telemetry, keys, masterId, table } = parts;
  const { raw, status, ms } = request;
  const path = decoded((raw.url ?? '').split('?', 1)[0] ?? '');
  const [endpoint, server] = ENDPOINT.exec(path) ?? [];
  if (endpoint === undefined) return;
  const shown = server === undefined || table().routes.has(server) ? path : NOWHERE;
  const caller = identify(raw.headers, keys, masterId());
  const whose = whoseCall(parts, shown, 'rule' in caller ? undefined : caller.id);
  const span = telemetry.begin(raw.headers, ms);
  span.end({ ...whose, status, outcome: status === undefined ? 'gone' : 'answered' });
  const found = misplacedIn(parts, request, caller);
  if (!found) return;
  const source = raw.socket.remoteAddress ?? '';
  // It is answered already; what can't be recorded is in the log of the process.
  parts.door.turnAway({ ...found, source, path: shown }, request.correlation).catch(() => undefined);
}

/** What somebody should hear of (G9, G25). */
function misplacedIn(
  { keys, masterId, sessions }: GatewayParts,
  { raw: { headers, rawHeaders, url = '' } }: Unhandled,
  caller: ReturnType<typeof identify>,
): Pick<TurnedAway, 'rule' | 'misplaced' | 'where'> | undefined {
  const found = takeMisplaced({ headers, rawHeaders, url }, { keys, masterId: masterId() }, (id) =>
    sessions.knows(id),
  );
  const beside = found && { misplaced: found.key, where: found.where };
  if ('rule' in caller)
    return TOLD.has(caller.rule) || caller.misplaced ? caller : beside && { rule: caller.rule, ...beside };
  const { authorization = 'bearer' } = caller;
  if (authorization === 'bearer') return beside && { rule: 'not_read', ...beside };
  return { rule: 'not_read', misplaced: authorization, where: 'header authorization' };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
