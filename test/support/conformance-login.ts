/** How the client of the conformance suite logs in, with the official SDK's own parts. */
import {
  auth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  UnauthorizedError,
} from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What the suite lets a client know beforehand. */
export type Known = Readonly<Record<string, string | undefined>>;

const CALLBACK = 'http://127.0.0.1:51338/callback';
/** The one that the suite expects of a client with a metadata document of its own. */
const METADATA_URL = 'https://conformance-test.local/client-metadata.json';

/** A person's client: it goes through the login whenever a request is refused, and asks once more. */
export function loggingIn(serverUrl: URL, scenario: string, known: Known, plain: FetchLike): FetchLike {
  const { provider, code, token } = person(scenario, known);
  return async (input, init) => {
    const ask = () => {
      const headers = new Headers(init?.headers);
      if (token() !== undefined) headers.set('authorization', `Bearer ${token()}`);
      return plain(input, { ...init, headers });
    };
    const refused = await ask();
    if (!isRefusal(refused)) return refused;
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
    const options = {
      serverUrl,
      fetchFn: plain,
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
      ...(scope !== undefined && { scope }),
    };
    const begun = await auth(provider, options);
    if (begun === 'REDIRECT') await auth(provider, { ...options, authorizationCode: code() });
    const answer = await ask();
    if (isRefusal(answer)) throw new UnauthorizedError(`refused with ${answer.status} after the login`);
    return answer;
  };
}

const isRefusal = ({ status }: Response): boolean => status === 401 || status === 403;

function person(scenario: string, { client_id, client_secret }: Known) {
  let client: OAuthClientInformationMixed | undefined =
    client_id === undefined
      ? undefined
      : { client_id, ...(client_secret !== undefined && { client_secret }) };
  let tokens: OAuthTokens | undefined;
  let verifier = '';
  let code = '';
  const provider: OAuthClientProvider = {
    redirectUrl: CALLBACK,
    ...(scenario === 'auth/basic-cimd' && { clientMetadataUrl: METADATA_URL }),
    clientMetadata: {
      client_name: 'official',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    clientInformation: () => client,
    saveClientInformation(given) {
      client = given;
    },
    tokens: () => tokens,
    saveTokens(given) {
      tokens = given;
    },
    codeVerifier: () => verifier,
    saveCodeVerifier(given) {
      verifier = given;
    },
    async redirectToAuthorization(url) {
      const { headers } = await fetch(url, { redirect: 'manual' });
      code = new URL(headers.get('location') ?? '').searchParams.get('code') ?? '';
    },
  };
  return { provider, code: () => code, token: () => tokens?.access_token };
}

/** @returns the authorization server that the protected-resource document of `url` names */
export async function issuerOf(url: URL, fetchFn: FetchLike): Promise<string> {
  return (await discoverOAuthServerInfo(url, { fetchFn })).authorizationServerUrl;
}

/** An identity token of one's employer is exchanged for a grant, and that for a token of the resource's server. */
export async function crossAppToken(url: URL, known: Known, fetchFn: FetchLike): Promise<string> {
  const { resourceMetadata, authorizationServerMetadata: server } = await discoverOAuthServerInfo(url, {
    fetchFn,
  });
  const grant = await tokenFrom(known.idp_token_endpoint ?? '', {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
    audience: server?.issuer ?? '',
    resource: resourceMetadata?.resource ?? '',
    subject_token: known.idp_id_token ?? '',
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
    client_id: known.idp_client_id ?? '',
  });
  return tokenFrom(
    server?.token_endpoint ?? '',
    { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: grant },
    { authorization: `Basic ${btoa(`${known.client_id}:${known.client_secret}`)}` },
  );
}

async function tokenFrom(endpoint: string, form: Record<string, string>, headers = {}): Promise<string> {
  const answer = await fetch(endpoint, { method: 'POST', headers, body: new URLSearchParams(form) });
  const body = (await answer.json()) as { access_token?: string };
  if (body.access_token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
  return body.access_token;
}
