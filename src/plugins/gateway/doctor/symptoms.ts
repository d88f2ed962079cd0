/** A fault with its cause and what to do. */
export interface Diagnosis {
  readonly code: string;
  readonly cause: string;
  readonly remedy: string;
}

interface Row extends Diagnosis {
  /** Words that people and clients use for it. */
  readonly words: RegExp;
}

const row = (code: string, words: RegExp, cause: string, remedy: string): Row => ({
  code,
  words,
  cause,
  remedy,
});

/** The symptoms of the documents and those of the gateway's own answers (G22). The first match counts. */
const ROWS: readonly Row[] = [
  row(
    'key_without_prefix',
    /malformed api key/i,
    'The value of x-gateway-api-key lacks the word Bearer and a space.',
    'Write x-gateway-api-key: Bearer <virtual_key>.',
  ),
  row(
    'key_in_query',
    /key\/info\?key=|\?key=/i,
    'The key is in a URL, and so in logs, spans and process lists.',
    'Read /key/info as the key itself (Authorization: Bearer <virtual_key>), and rotate the key.',
  ),
  row(
    'wrong_sse_path',
    /\/sse\b|\bsse path/i,
    'There is no event-stream mount of a single server.',
    'Use /<server>/mcp; the only SSE mount is the aggregate at /mcp/sse.',
  ),
  row(
    'session_unknown',
    /session not found/i,
    'The session has ended, or belongs to another key or route.',
    'Connect again: clients begin another session by themselves when they hear this 404.',
  ),
  row(
    'wrong_url',
    /^(?!.*(?:well-known|protected-resource|discovery)).*(?:route not found|\b404\b)/is,
    'The URL names no server behind the gateway.',
    'Use /<server>/mcp with underscores in the name; `holdfast gateway routes` lists the servers.',
  ),
  row(
    'trailing_slash',
    /\b307\b|redirect/i,
    'The URL ends with a slash, and a client that does not follow the redirect loses its body.',
    'Drop the slash: /<server>/mcp.',
  ),
  row(
    'registration_limit',
    /max(?:imum)?\b.{0,20}clients|500 clients/i,
    'The realm has reached its limit of clients.',
    'The nightly reaper removes clients without sessions: check its last run, then log in again.',
  ),
  row(
    'registration_refused',
    /dynamic client registration|registration (?:was )?refused|cannot register/i,
    'The identity provider does not let this client register itself.',
    'Add the entry with --client-id mcp-public (`holdfast gateway client-config --registered`); for cluster also set oauth.scopes to "mcp-cluster groups offline_access".',
  ),
  row(
    'client_not_found',
    /client not found/i,
    'The client that was registered has been reaped.',
    'Clear the authentication of the entry and log in again, or remove the entry and add it again.',
  ),
  row(
    'no_login',
    /no (?:oauth|login)|never (?:asks|prompts)|no prompt/i,
    'Discovery works, but the entry has a wrong URL or a static Authorization header, which ends the login.',
    'Correct the URL, and take Authorization out of the entry.',
  ),
  row(
    'no_document',
    /\b502\b.*(?:discovery|well-known|protected-resource)|(?:discovery|well-known|protected-resource).*\b502\b/i,
    'The upstream serves no protected-resource document, or did not a moment ago.',
    'Let the upstream serve one; the gateway asks again within a minute.',
  ),
  row(
    'wrong_document_url',
    /\b404\b.*(?:discovery|well-known|protected-resource)|(?:discovery|well-known|protected-resource).*\b404\b/i,
    'The document is at the root of the host.',
    'Use /.well-known/oauth-protected-resource/<server>/mcp.',
  ),
  row(
    'not_entitled',
    /empty `?(?:tool|list)|no tools|tools":\[\]|not allowed to call/i,
    "The key's scope does not name the route.",
    'See the servers that it names with `holdfast gateway keys info <alias>` (info.object_permission of /key/info), and add this one: `keys update <alias> --server <name>`, with all that it is to have.',
  ),
  row(
    'wrong_audience',
    /invalid_token|audience/i,
    'The identity token is for another audience, or has expired.',
    'Log in again; memory wants the audience mcp-public, cluster {gateway_url}/cluster/mcp.',
  ),
  row(
    'identity_provider_down',
    /temporarily_unavailable/i,
    'The upstream cannot reach the identity provider.',
    'Fix the identity provider; nothing is wrong with the client or its token.',
  ),
  row(
    'hyphen',
    /hyphen|underscore|fails to load/i,
    'A server name has a hyphen.',
    'Write it with underscores; the other routes go on meanwhile, and `holdfast gateway routes` says what is wrong with this one.',
  ),
  row(
    'over_limit',
    /(?:rate limit|budget)\b.{0,20}exceeded|too many (?:calls|streams)/i,
    'The key has used up its limit.',
    'Wait as long as retry-after says; `holdfast gateway keys info <alias>` shows the limits, `keys update` raises them.',
  ),
  row(
    'foreign_origin',
    /foreign origin|HF_HTTP_(?:ORIGIN|HOST)/i,
    'A page of another origin calls, or the gateway is called by a name that it does not know.',
    'Call it by a name of allowedHosts or of HOLDFAST_PUBLIC_URL, and not from a web page.',
  ),
  row(
    'key_in_authorization',
    /virtual key.*authorization|unauthorized.*(?:tools\/list works|while)/i,
    'A virtual key is in Authorization, or the stored token of the upstream begins with the word Bearer.',
    'Send the key as x-gateway-api-key only and rotate it; store the bare token.',
  ),
  row(
    'master_key_sent',
    /master key is for admin/i,
    'The master key was sent to a route. It belongs to the admin endpoints alone.',
    'Take it out of the entry or the token file, send a virtual key, and rotate the master key.',
  ),
  row(
    'key_wrong',
    /\b40[13]\b|invalid api key|no api key|unauthorized/i,
    'The key is wrong, not sent, in the wrong header, or revoked.',
    'Send x-gateway-api-key: Bearer <virtual_key>; a 200 with mcp-session-id and a tool list that is not empty confirm it.',
  ),
  row(
    'gateway_down',
    /no answer from|ECONNREFUSED|connection refused/i,
    'The gateway itself does not answer at this URL.',
    '`holdfast status` shows where it listens; name another base with --url or HOLDFAST_PUBLIC_URL.',
  ),
  row(
    'token_unusable',
    /usable token|token can ?not be used/i,
    "The gateway's own token for the upstream can not be used as it is stored.",
    'Store the bare token in a file of mode 0600; the gateway reads it again within seconds, and `holdfast gateway routes` names the file.',
  ),
  row(
    'token_not_issued',
    /authorization server|invalid_client|unauthorized_client|invalid_target/i,
    'The authorization server issues no token for the upstream to the gateway.',
    "Check the route's issuer, clientId, client secret, audience and scopes there; the gateway tries again by itself.",
  ),
  row(
    'upstream_down',
    /\b50[0234]\b|cannot be reached|unreachable/i,
    'The server behind the gateway does not answer, or with an error of its own.',
    '`holdfast gateway routes` shows the reason.',
  ),
];

/** @param symptom in the words of a person or a client @returns undefined when it is not known */
export function diagnose(symptom: string): Diagnosis | undefined {
  const found = ROWS.find(({ words }) => words.test(symptom));
  return found && withoutWords(found);
}

/** @param code of a symptom */
export function diagnosis(code: string): Diagnosis {
  const found = ROWS.find((each) => each.code === code);
  if (!found) throw new RangeError(`there is no row ${code}`);
  return withoutWords(found);
}

const withoutWords = ({ code, cause, remedy }: Row): Diagnosis => ({ code, cause, remedy });
