import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import Provider, { errors } from 'oidc-provider';
import { listen } from './mcp-upstream.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const SECRET = 'the secret: 100% +/-_';

/** One request to the token endpoint. */
export interface TokenRequest {
  readonly authorization: string | undefined;
  readonly parameters: URLSearchParams;
}

/** A real authorization server with one confidential client, which may ask for tokens of its own and exchange others'. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly clientId: string;
  readonly secret: string;
  /** What its token endpoint was asked, in order. */
  readonly asked: TokenRequest[];
  /** Answers in its place, where it is set. @returns whether it did, or will */
  fault: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** @returns a token of a person, as a client of hers has it */
  login(account: string): Promise<string>;
}

/** @param lifetime of its tokens, seconds */
export async function startAuthorizationServer(
  t: ExecutionContext<unknown>,
  lifetime = 600,
): Promise<AuthorizationServer> {
  const server = createServer();
  await listen(server);
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const resourceServer = (resource: string) => ({
    scope: 'tickets:read tickets:write',
    audience: resource,
    accessTokenTTL: lifetime,
    accessTokenFormat: 'jwt' as const,
    jwt: { sign: { alg: 'RS256' as const } },
  });
  const provider = new Provider(issuer, {
    cookies: { keys: ['test'] },
    ttl: { AccessToken: lifetime, ClientCredentials: lifetime },
    scopes: ['openid', 'tickets:read', 'tickets:write'],
    clients: [
      {
        client_id: 'gateway:1',
        client_secret: SECRET,
        grant_types: ['client_credentials', EXCHANGE],
        redirect_uris: [],
        response_types: [],
        scope: 'openid tickets:read tickets:write',
      },
    ],
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, resource: string) => resourceServer(resource),
      },
    },
  });
  provider.registerGrantType(
    EXCHANGE,
    async (context) => {
      const { client, params } = context.oidc;
      const subject = await provider.AccessToken.find(params.subject_token ?? '');
      if (!subject) throw new errors.InvalidGrant('the subject token is unknown');
      const { accountId } = subject;
      const token = new provider.AccessToken({ accountId, client, scope: params.scope, gty: 'exchange' });
      const resource = params.resource ?? '';
      token.resourceServer = new provider.ResourceServer(resource, resourceServer(resource));
      context.oidc.entity('AccessToken', token);
      context.body = {
        access_token: await token.save(),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: token.expiration,
      };
    },
    ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'],
  );
  const callback = provider.callback();
  const running: AuthorizationServer = {
    issuer,
    clientId: 'gateway:1',
    secret: SECRET,
    asked: [],
    fault: undefined,
    async login(account) {
      const client = await provider.Client.find('gateway:1');
      return new provider.AccessToken({ accountId: account, client, scope: 'openid', gty: 'test' }).save();
    },
  };
  server.on('request', (request, response) => {
    if (request.url === '/token') note(request, running.asked);
    if (!running.fault?.(request, response)) void callback(request, response);
  });
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((done) => server.close(() => done()));
  });
  return running;
}

function note(request: IncomingMessage, asked: TokenRequest[]): void {
  const parameters = new URLSearchParams();
  asked.push({ authorization: request.headers.authorization, parameters });
  const { push } = request;
  let body = '';
  // Where the provider reads it, too.
  request.push = (chunk: Buffer | null, ...more) => {
    if (chunk) body += chunk.toString('utf8');
    else for (const [name, value] of new URLSearchParams(body)) parameters.append(name, value);
    return push.call(request, chunk, ...more);
  };
}
