import { isObject } from '../../../core/kernel/json.ts';
import type { Message } from '../mcp/message.ts';
import { serverOf } from '../mcp/tool-names.ts';
import type { Route } from '../routes/route.ts';
import type { Selection } from './selection.ts';
import { toServer } from './server-requests.ts';

/** Whom a message to the aggregate is for. */
export interface Meaning {
  /** The one upstream, or undefined for all. */
  readonly route: Route | undefined;
  /** As that upstream is to read it; `tools/call` alone keeps its shown name, which is judged. */
  readonly message: Message | undefined;
}

export function meaningOf(message: Message | undefined, { routes }: Selection): Meaning {
  const find = (server: string | undefined) => routes.find(({ name }) => name === server);
  if (!message) return { route: undefined, message };
  const directed = toServer(message);
  if (directed) return { route: find(directed.server), message: directed.message };
  const { method, name = '', body } = message;
  if (method === 'tools/call') return { route: find(serverOf(name)), message };
  if (method === 'prompts/get') return { route: find(serverOf(name)), message: renamed(message, bare(name)) };
  if (method === 'completion/complete' && isObject(body.params) && isObject(body.params.ref)) {
    const { ref } = body.params;
    if (ref.type !== 'ref/prompt' || typeof ref.name !== 'string') return { route: undefined, message };
    const params = { ...body.params, ref: { ...ref, name: bare(ref.name) } };
    return { route: find(serverOf(ref.name)), message: { ...message, body: { ...body, params } } };
  }
  return { route: undefined, message };
}

const bare = (shown: string): string => shown.slice(shown.indexOf('-') + 1);

function renamed(message: Message, name: string): Message {
  const params = { ...(message.body.params as object), name };
  return { ...message, name, body: { ...message.body, params } };
}
