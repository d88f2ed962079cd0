/** What of a call a person decides about: its digest, and the text that the person reads. */
import type { IncomingHttpHeaders } from 'node:http';
import { redact } from '../../../core/host/logging/redact.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { ApprovalRequest } from '../../../machines/gateway/approval.ts';
import type { ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Message } from '../mcp/message.ts';
import type { Route } from '../routes/route.ts';
import { PARAM } from '../upstream/request.ts';

/** A tool whose calls a person must approve. */
export interface ToolForApproval {
  readonly route: Route;
  /** The upstream's own name. */
  readonly tool: string;
}

/** A call that waits for a person, without an id yet. */
export interface NewRequest extends Omit<ApprovalRequest, 'id'> {
  /** Its arguments as a person sees them: without secrets, and cut. */
  readonly shown: string;
}

/** Characters of arguments that a person is shown. */
const LONGEST_SHOWN = 8_192;

/**
 * Two calls are the same when key, route, tool and all parameters are but those of `_meta` that the protocol has; on an identity route the caller's own token
 * as well, for there several people may have one key.
 *
 * @param headers of the caller
 */
export function newRequest(
  { route, tool }: ToolForApproval,
  {
    key,
    message,
    headers,
  }: {
    readonly key: AuthenticatedKey;
    readonly message: Message;
    readonly headers: IncomingHttpHeaders;
  },
  { alias, owner }: Pick<ForwardParams, 'alias' | 'owner'>,
  vault: Pick<Vault, 'fingerprint'>,
): NewRequest {
  const { _meta, name, ...given } = isObject(message.body.params) ? message.body.params : {};
  const meta = actedOn(_meta);
  const repeated = Object.entries(headers).filter(([header]) => header.startsWith(PARAM));
  const beside = {
    ...(meta && { _meta: meta }),
    ...(repeated.length > 0 && { headers: Object.fromEntries(repeated) }),
  };
  const text = JSON.stringify({ ...given, ...beside });
  const identity = route.needsIdentity ? { authorization: headers.authorization } : {};
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

/** Fields of `_meta` that differ between two tries of one call: the protocol's own, and those of traces. */
const OF_PROTOCOL = /^(?:progressToken|traceparent|tracestate|baggage|io\.modelcontextprotocol\/.*)$/s;

/** @returns what of `_meta` a server may act on; undefined where there is nothing */
function actedOn(meta: unknown): Readonly<Record<string, unknown>> | undefined {
  const fields = Object.entries(isObject(meta) ? meta : {}).filter(([name]) => !OF_PROTOCOL.test(name));
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

/** Every number as it was written: two that a double can't tell apart are two calls. */
function exact(text: string): unknown {
  return JSON.parse(text, (_name, value, context?: { source?: string }) => {
    if (typeof value === 'string') return `s${value}`;
    return typeof value === 'number' ? `n${context?.source ?? value}` : value;
  });
}

/** What takes no room on a page, or turns around what stands beside it; the ends of lines are ours. */
const UNSEEN = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A text of a caller as a person may read it: nothing of it is hidden, and none looks like another one. */
export function visible(text: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replaceAll(UNSEEN, (sign) => sign.split('').map(escaped).join(''));
}

function shownText(text: string): string {
  const params: unknown = JSON.parse(text, (_name, value, context?: { source?: string }) =>
    typeof value === 'number' && String(value) !== context?.source ? context?.source : value,
  );
  const { arguments: given = {}, ...others } = isObject(params) ? params : {};
  const shown = visible(
    JSON.stringify(redact(Object.keys(others).length > 0 ? { ...others, arguments: given } : given), null, 2),
  );
  const cut = shown.length - LONGEST_SHOWN;
  return cut > 0
    ? `${shown.slice(0, LONGEST_SHOWN)}\n… and ${cut} characters more, which are not shown`
    : shown;
}
