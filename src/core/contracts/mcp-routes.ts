/** Routes of the MCP gateway that other plugins bring: `context.contribute(mcpRoutes, (started) => ({ … }))`. */
import type { McpServerFactory } from '@modelcontextprotocol/server';
import { defineContributionPoint } from './token.ts';

/** A program that speaks MCP on its standard input and output; no shell is involved. @public */
export interface McpCommand {
  /** The program, absolute or found in PATH. */
  readonly run: string;
  readonly args?: string[];
  /** Variables of its environment; it gets nothing of ours but PATH, HOME, LANG and TZ. */
  readonly env?: Record<string, string>;
  /** Variables whose values lie in the secrets store: name to `<path>#<property>`. */
  readonly secrets?: Record<string, string>;
  /** Working folder; the data folder unless set. */
  readonly cwd?: string;
  /**
   * Processes at once: one for each session, and one for all clients of the stateless revision. The gateway's own probe may
   * have one more.
   */
  readonly maxProcesses?: number;
  /** Processes of the sessions of one virtual key; three quarters of `maxProcesses` unless set. */
  readonly maxProcessesPerKey?: number;
  /** A process that had nothing to do for so long is ended, milliseconds. */
  readonly idleMs?: number;
  /** Resident memory above which a process is ended, bytes. */
  readonly maxMemory?: number;
}

/**
 * One server behind the gateway. Exactly one of `server`, `command` and `url` says where it is; an entry of the same name
 * in the gateway's own options overrides its settings, and replaces it where it has an upstream of its own.
 *
 * @public
 */
export interface McpRoute {
  /** Small letters, digits and underscores; no two plugins bring one name. */
  readonly name: string;
  /** Makes the official SDK's server, for each session and each request without one: it runs in this process, without a port. */
  readonly server?: McpServerFactory;
  /**
   * The `server` loads what it needs with the first request, which a probe must not be: until a client calls the route, its
   * health is unknown.
   */
  readonly onDemand?: boolean;
  readonly command?: McpCommand;
  /** The upstream's MCP endpoint. */
  readonly url?: string;
  /** Where the upstream's credential comes from; `credential_free` unless set. */
  readonly disposition?: 'overwrite' | 'relay' | 'credential_free' | 'client_credentials' | 'token_exchange';
  /** File (mode 0600) with the bare token of an `overwrite` route. */
  readonly tokenFile?: string;
  /** Place of that token, or of the client's secret, in the secrets store, `<path>#<property>`. */
  readonly secret?: string;
  /** Of `client_credentials` and `token_exchange`: the authorization server, or its token endpoint. */
  readonly issuer?: string;
  readonly tokenEndpoint?: string;
  /** The gateway's client there, how it proves itself, and the file (mode 0600) with its secret. */
  readonly clientId?: string;
  readonly clientAuthentication?: 'client_secret_basic' | 'client_secret_post';
  readonly secretFile?: string;
  /** `resource` of the request for a token; `audience` and `scopes` are those of it, too. */
  readonly resource?: string;
  /** Of `token_exchange`: what callers bring. */
  readonly subjectTokenType?: 'access_token' | 'id_token' | 'jwt';
  /** Of `token_exchange`: scopes a client asks for at its login. */
  readonly loginScopes?: string[];
  /** Of a `relay` route: the `aud` that the server expects in a token; `{gateway_url}` is replaced. */
  readonly audience?: string;
  /** Of a `relay` route whose server is on this machine: the issuers whose tokens it takes, for `audience`. */
  readonly authorizationServers?: string[];
  /** Of a `relay` route: port of the client's login callback. */
  readonly callbackPort?: number;
  /** Of a `relay` route: scopes a client asks for when it can't register itself. */
  readonly scopes?: string[];
  /** Whether tool names get the server's name as a prefix; true unless set. */
  readonly prefix?: boolean;
  /** The tools it offers, by its own names; all when absent. */
  readonly tools?: string[];
  /** What happens when the definitions of its tools change: told, or withheld until a person accepts them; `follow` unless set. */
  readonly pin?: 'follow' | 'ask' | 'block';
  /** With `ask`, each call of a tool waits until a person approves it; `none` unless set, here or for a single tool. */
  readonly approval?: 'none' | 'ask';
  /** What is changed of single tools, by the server's own names: a name, a text, hidden, arguments fixed or with a default, approval. */
  readonly toolSettings?: Record<
    string,
    {
      readonly name?: string;
      readonly description?: string;
      readonly hidden?: boolean;
      readonly fixed?: Record<string, unknown>;
      readonly defaults?: Record<string, unknown>;
      readonly approval?: 'none' | 'ask';
    }
  >;
  /** Cost of a call by the server's own name of the tool; `*` stands for all other tools. */
  readonly costs?: Record<string, number>;
  /** Its calls may change state: each decision is durable before the call is forwarded. */
  readonly writes?: boolean;
  /** Longest wait for an answer's beginning, milliseconds. */
  readonly timeoutMs?: number;
}

/** Where the gateway collects routes. @public */
export const mcpRoutes = defineContributionPoint<McpRoute>('mcp.routes');
