import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import Provider from 'oidc-provider';
import { listen, toolServer } from './mcp-upstream.ts';

/** A real authorization server: dynamic registration, PKCE, JWT access tokens with the audience of their resource. */
export interface IdentityProvider {
  readonly issuer: string;
  /** Goes through login and consent as a person in a browser. @returns the code that the client's callback gets */
  signIn(authorizationUrl: URL): Promise<string>;
  /** A token of a client of its own, by client credentials: each has another subject. */
  token(): Promise<string>;
  /** Paths that it was asked for. */
  readonly asked: readonly string[];
  /** Takes it off the network. */
  close(): Promise<void>;
}

/** @param audienceOf what `aud` says for a resource */
export async function startIdentityProvider(
  t: ExecutionContext<unknown>,
  audienceOf: (resource: string) => string,
): Promise<IdentityProvider> {
  const server = createServer();
  await listen(server);
  const issuer = addressOf(server);
  const provider = new Provider(issuer, {
    cookies: { keys: ['test'] },
    scopes: ['openid', 'offline_access', 'mcp-cluster', 'groups'],
    pkce: { required: () => true },
    clientDefaults: { application_type: 'native', token_endpoint_auth_method: 'none' },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: 'mcp-cluster groups',
          audience: audienceOf(resource),
          accessTokenFormat: 'jwt' as const,
          jwt: { sign: { alg: 'RS256' as const } },
        }),
      },
    },
  });
  const callback = provider.callback();
  const asked: string[] = [];
  server.on('request', (request, response) => {
    asked.push(String(request.url));
    void callback(request, response);
  });
  const close = () => closed(server);
  t.teardown(close);
  return { issuer, signIn: (url) => signIn(url, issuer), token: () => tokenOfClient(issuer), asked, close };
}

async function tokenOfClient(issuer: string): Promise<string> {
  const registered = await fetch(`${issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: 'client_secret_post',
    }),
  });
  const client = (await registered.json()) as { client_id: string; client_secret: string };
  const { client_id, client_secret } = client;
  const granted = await fetch(`${issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      resource: 'http://127.0.0.1/memory/mcp',
      client_id,
      client_secret,
    }),
  });
  const answer = (await granted.json()) as { access_token?: string };
  if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify([client, answer])}`);
  return answer.access_token;
}

/** Follows redirects and fills in the two forms, keeping cookies as a browser does. */
async function signIn(authorizationUrl: URL, issuer: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next: { url: URL; body?: URLSearchParams } = { url: authorizationUrl };
  for (let step = 0; step < 20; step += 1) {
    const answer = await fetch(next.url, {
      method: next.body ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(next.body && { body: next.body }),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = cookie.split(';', 1)[0]?.split(/=(.*)/s) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (location !== null) {
      const url = new URL(location, next.url);
      const code = url.searchParams.get('code');
      if (!url.href.startsWith(issuer)) {
        if (code === null) throw new Error(`the callback got ${url.search}`);
        return code;
      }
      next = { url };
      continue;
    }
    const page = await answer.text();
    const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
    if (action === undefined) throw new Error(`no form at ${next.url.pathname}: ${page.slice(0, 500)}`);
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? 'login';
    next = {
      url: new URL(action, next.url),
      body: new URLSearchParams({ prompt, login: 'u1', password: 'x' }),
    };
  }
  throw new Error('the login goes in circles');
}

/** An MCP server that lets in whoever has a token of the provider for its audience, and says what it was given. */
export interface IdentityUpstream {
  readonly url: string;
  readonly authorizations: (string | undefined)[];
}

export async function startIdentityUpstream(
  t: ExecutionContext<unknown>,
  issuer: string,
  audience: () => string,
): Promise<IdentityUpstream> {
  const authorizations: (string | undefined)[] = [];
  const keys = createRemoteJWKSet(new URL('/jwks', issuer), { timeoutDuration: 2_000 });
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
      const document = {
        resource: `${addressOf(server)}/mcp`,
        authorization_servers: [issuer],
        scopes_supported: ['mcp-cluster', 'groups', 'offline_access'],
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
      return;
    }
    authorizations.push(request.headers.authorization);
    const problem = await problemOf(request.headers.authorization, keys, issuer, audience());
    if (problem !== undefined) {
      response.writeHead(401, { 'www-authenticate': `Bearer error="${problem}"` }).end();
      return;
    }
    const transport = new StreamableHTTPServerTransport({
      enableJsonResponse: true,
    });
    response.once('close', () => void transport.close());
    await toolServer().connect(transport as never);
    await transport.handleRequest(request, response);
  });
  await listen(server);
  t.teardown(() => closed(server));
  return { url: `${addressOf(server)}/mcp`, authorizations };
}

async function problemOf(
  authorization: string | undefined,
  keys: ReturnType<typeof createRemoteJWKSet>,
  issuer: string,
  audience: string,
): Promise<string | undefined> {
  const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
  if (token === undefined) return 'invalid_request';
  try {
    await jwtVerify(token, keys, { issuer, audience });
    return undefined;
  } catch (error) {
    const known = error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout);
    return known && error.code !== 'ERR_JOSE_GENERIC' ? 'invalid_token' : 'temporarily_unavailable';
  }
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((done) => server.close(() => done()));
}
