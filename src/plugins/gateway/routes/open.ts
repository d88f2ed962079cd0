import { type RouteDefinition, variablesOf } from './definition.ts';
import type { RouteEntry } from './entry.ts';
import type { Route } from './table.ts';
import { type SecretSources, UpstreamSecret } from './upstream-secret.ts';

/**
 * Makes a route of its definition, and reads its token for the first time.
 *
 * @throws HF_GATEWAY_ROUTE, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID the token can't be used as it is
 */
export async function openRoute(definition: RouteDefinition, sources: SecretSources): Promise<Route> {
  const { entry, url, secret: source } = definition;
  const { name, costs, tools } = entry;
  const offered = tools && new Set(tools);
  const secret = source === undefined ? undefined : new UpstreamSecret(source, sources);
  await secret?.load();
  const variables = variablesOf(name);
  return {
    name,
    entry,
    url: url === undefined ? undefined : new URL(url),
    get reason() {
      if (url === undefined) return `not configured: set ${variables}_URL`;
      if (secret)
        return secret.missing ? `without its token, which ${secret.keeper} does not give` : undefined;
      return needsToken(entry)
        ? `without a token: set ${variables}_TOKEN_FILE or ${variables}_TOKEN`
        : undefined;
    },
    credential: (authorization) => credentialOf(entry, secret, authorization),
    costOf: (tool) => (Object.hasOwn(costs, tool) ? costs[tool] : costs['*']) ?? 0,
    offers: (tool) => offered?.has(tool) ?? true,
  };
}

const needsToken = (entry: RouteEntry): boolean =>
  entry.disposition === 'overwrite' || (entry.disposition === 'custom' && entry.kind.needsSecret === true);

function credentialOf(
  entry: RouteEntry,
  secret: UpstreamSecret | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> {
  switch (entry.disposition) {
    case 'overwrite':
      return secret ? { authorization: `Bearer ${secret.read()}` } : {};
    case 'relay':
      return authorization === undefined ? {} : { authorization };
    case 'credential_free':
      return {};
    case 'custom':
      return lowered(entry.kind.headers({ options: entry.options as never, secret: secret?.read() }));
  }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
