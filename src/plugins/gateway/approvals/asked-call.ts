/** What of a call a person decides about: its digest, and the text that the person reads. */
import { redact } from '../../../core/host/logging/redact.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { ApprovalRequest } from '../../../machines/gateway/approval.ts';
import type { ForwardParams } from '../../../machines/gateway/key.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Message } from '../mcp/message.ts';
import type { Route } from '../routes/route.ts';

/** A tool whose calls a person must approve. */
export interface AskedTool {
  readonly route: Route;
  /** The upstream's own name. */
  readonly tool: string;
}

/** A call that waits for a person, without an id yet. */
export interface AskedCall extends Omit<ApprovalRequest, 'id'> {
  /** Its arguments as a person sees them: without secrets, and cut. */
  readonly shown: string;
}

/** Characters of arguments that a person is shown. */
const LONGEST_SHOWN = 8_192;

/**
 * Two calls are the same when key, route, tool and all parameters but `_meta` are; on a relay route the caller's own token as
 * well, for there several people may have one key.
 *
 * @param authorization header of the caller
 */
export function askedCall(
  { route, tool }: AskedTool,
  {
    key,
    message,
    authorization,
  }: {
    readonly key: AuthenticatedKey;
    readonly message: Message;
    readonly authorization: string | undefined;
  },
  { alias, owner }: Pick<ForwardParams, 'alias' | 'owner'>,
  vault: Pick<Vault, 'fingerprint'>,
): AskedCall {
  const { _meta, name, ...params } = isObject(message.body.params) ? message.body.params : {};
  const text = JSON.stringify(params);
  const identity = route.entry.disposition === 'relay' ? { authorization } : {};
  const whole = { key: key.id, route: route.name, tool, params: exact(text), ...identity };
  return {
    key: key.id,
    ...(alias !== undefined && { alias }),
    ...(owner !== undefined && { owner }),
    route: route.name,
    tool,
    digest: vault.fingerprint(whole),
    shown: shownText(text),
  };
}

/** Every number as it was written: two that a double can't tell apart are two calls. */
function exact(text: string): unknown {
  return JSON.parse(text, (_name, value, context?: { source?: string }) => {
    if (typeof value === 'string') return `s${value}`;
    return typeof value === 'number' ? `n${context?.source ?? value}` : value;
  });
}

function shownText(text: string): string {
  const params: unknown = JSON.parse(text, (_name, value, context?: { source?: string }) =>
    typeof value === 'number' && String(value) !== context?.source ? context?.source : value,
  );
  const { arguments: given = {}, ...others } = isObject(params) ? params : {};
  const shown = JSON.stringify(
    redact(Object.keys(others).length > 0 ? { ...others, arguments: given } : given),
    null,
    2,
  );
  const cut = shown.length - LONGEST_SHOWN;
  return cut > 0
    ? `${shown.slice(0, LONGEST_SHOWN)}\n… and ${cut} characters more, which are not shown`
    : shown;
}
