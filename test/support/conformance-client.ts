/**
 * The official client as the conformance suite wants one: what each of the suite's client scenarios asks of it, called
 * at the suite's own server or behind a gateway.
 */
import {
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
} from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { crossAppToken, issuerOf, type Known, loggingIn } from './conformance-login.ts';

/** One client that the suite asks for. */
export interface AskedClient {
  readonly scenario: string;
  /** The suite's server. */
  readonly server: string;
  /** What the client knows beforehand, as JSON; empty for most. */
  readonly context: string;
}

/** Where a client calls. */
export interface Place {
  readonly url: string;
  /** What it sends there, and nowhere else. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What each scenario wants called, beside the list of tools. */
const CALLS: Readonly<Record<string, readonly [tool: string, args: Record<string, unknown>]>> = {
  tools_call: ['add_numbers', { a: 5, b: 3 }],
  'elicitation-sep1034-client-defaults': ['test_client_elicitation_defaults', {}],
  'sse-retry': ['test_reconnection', {}],
};

/** @throws whatever the official client throws, in scenarios that want it to give up as well */
export async function runClient({ scenario, context }: AskedClient, place: Place): Promise<void> {
  const client = new Client(
    { name: 'official', version: '1.0.0' },
    { capabilities: { elicitation: { form: { applyDefaults: true } } } },
  );
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: {} }));
  const url = new URL(place.url);
  const known: Known = context === '' ? {} : JSON.parse(context);
  const options = await optionsOf(scenario, url, known, admitted(url, place.headers ?? {}));
  const transport = new StreamableHTTPClientTransport(url, options);
  try {
    await client.connect(transport as never);
    await client.listTools();
    const [tool, args] = scenario.startsWith('auth/') ? ['test-tool', {}] : (CALLS[scenario] ?? []);
    if (tool !== undefined) await client.callTool({ name: tool, arguments: args ?? {} });
  } finally {
    await client.close();
  }
}

/** Each kind of login that the suite knows. */
async function optionsOf(
  scenario: string,
  url: URL,
  known: Known,
  fetch: FetchLike,
): Promise<StreamableHTTPClientTransportOptions> {
  const { client_id: clientId = '', client_secret: clientSecret = '' } = known;
  switch (scenario) {
    case 'auth/client-credentials-jwt': {
      const { private_key_pem: privateKey = '', signing_algorithm: algorithm = '' } = known;
      const expectedIssuer = await issuerOf(url, fetch);
      return {
        fetch,
        authProvider: new PrivateKeyJwtProvider({ clientId, privateKey, algorithm, expectedIssuer }),
      };
    }
    case 'auth/client-credentials-basic': {
      const expectedIssuer = await issuerOf(url, fetch);
      return {
        fetch,
        authProvider: new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer }),
      };
    }
    case 'auth/cross-app-access-complete-flow': {
      const token = await crossAppToken(url, known, fetch);
      return { fetch, requestInit: { headers: { authorization: `Bearer ${token}` } } };
    }
    default:
      return { fetch: scenario.startsWith('auth/') ? loggingIn(url, scenario, known, fetch) : fetch };
  }
}

/** @returns a fetch that sends these headers to the origin of `url` alone: an authorization server gets none of them */
function admitted({ origin }: URL, more: Readonly<Record<string, string>>): FetchLike {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    if (new URL(input).origin === origin) {
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
    }
    return fetch(input, { ...init, headers });
  };
}
