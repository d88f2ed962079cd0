import type { Dispatcher } from 'undici';
import { ask, type UpstreamAnswer } from '../fast-path/upstream-request.ts';
import type { IssuedCredential } from '../issued/issued-tokens.ts';
import { withoutToken } from '../issued/token-fault.ts';
import type { Route } from '../routes/route.ts';
import { UpstreamFault } from './failures.ts';
import { type ForUpstream, requestTo } from './request.ts';

/**
 * Sends a request to the upstream of a route, with a token that lives where an authorization server issues it.
 *
 * @returns the answer when its headers are there
 * @throws UpstreamFault there is no token; what the connection throws
 */
export function askRoute(agent: Dispatcher, route: Route, sent: ForUpstream): Promise<UpstreamAnswer> {
  const { issued } = route;
  return issued ? askWithToken(agent, route, issued, sent) : ask(agent, requestTo(route, sent));
}

/** What answers 401 has not processed the request, so that it may be sent once more with another token. */
async function askWithToken(
  agent: Dispatcher,
  route: Route,
  issued: IssuedCredential,
  sent: ForUpstream,
): Promise<UpstreamAnswer> {
  const fault = await issued.prepare(sent.signal);
  if (fault) throw new UpstreamFault(`is ${withoutToken(fault)}`);
  const { value } = issued;
  const answer = await ask(agent, requestTo(route, sent));
  if (answer.statusCode !== 401 || value === undefined) return answer;
  if (!(await issued.replace(value, sent.signal))) return answer;
  void answer.body.dump();
  return ask(agent, requestTo(route, sent));
}
