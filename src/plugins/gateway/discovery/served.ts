import type { RouteEntry } from '../routes/entry.ts';
import type { DocumentAnswer } from './document.ts';

/** What the gateway serves: what the upstream says of its login, or its entry where the upstream says nothing. */
export function served(answer: DocumentAnswer, entry: RouteEntry): DocumentAnswer {
  if (answer.kind !== 'none' || entry.disposition !== 'relay' || !entry.authorizationServers) return answer;
  const { authorizationServers, scopes } = entry;
  const document = {
    authorization_servers: authorizationServers,
    ...(scopes && { scopes_supported: scopes }),
  };
  return { kind: 'document', document };
}
