import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the MCP gateway. */
export const GatewayError = defineErrors({
  HF_GATEWAY_ROUTE: {
    status: 500,
    what: 'The route can not be served: {variable}: {reason}.',
    remedy: 'Correct it; the other routes go on meanwhile, and `holdfast gateway routes` lists them all.',
  },
  HF_GATEWAY_OPENAPI: {
    status: 422,
    what: 'The OpenAPI document {document} can not be used: {reason}.',
    remedy:
      '`holdfast gateway openapi {document}` shows its digest, its operations, and which of them can be tools.',
  },
  HF_GATEWAY_OPENAPI_AWAY: {
    status: 502,
    what: 'The OpenAPI document {document} can not be read: {reason}.',
    remedy: 'It is read again every 30 seconds; a document in a file does not depend on another server.',
  },
  HF_GATEWAY_OPENAPI_CHANGED: {
    status: 409,
    what: 'The OpenAPI document {document} has the digest {found}, and its entry pins {pinned}.',
    remedy:
      'Compare it with the one that was pinned; when its changes are right, write the new digest into the entry.',
  },
  HF_GATEWAY_KEY_REQUEST: {
    status: 400,
    what: 'The request is not valid: {field}: {reason}.',
    remedy: 'Correct that field; docs/gateway.md has them all.',
  },
  HF_GATEWAY_KEY_UNKNOWN: {
    status: 404,
    what: 'No key is known by {name}.',
    remedy: '`holdfast gateway keys list` and GET /key/list show ids and aliases.',
  },
  HF_GATEWAY_KEY_AMBIGUOUS: {
    status: 409,
    what: 'More than one key has the alias {name}.',
    remedy: 'Name the one that is meant by its id, as `holdfast gateway keys list` shows it.',
  },
  HF_GATEWAY_KEY_EXISTS: {
    status: 409,
    what: 'That key value is taken already, by {id}.',
    remedy:
      'Change that key instead, or use another value; a value that was ever used for a key is not used again.',
  },
  HF_GATEWAY_KEY_ALIAS: {
    status: 409,
    what: 'The alias {alias} is taken by the key {id}.',
    remedy:
      'Use another alias, or `holdfast gateway keys revoke {id}` first; `keys rotate` gives that key another value.',
  },
  HF_GATEWAY_KEY_REVOKED: {
    status: 409,
    what: 'The key {id} is revoked, and stays so.',
    remedy: 'Generate another one.',
  },
  HF_GATEWAY_KEY_CUT_OFF: {
    status: 503,
    what: 'No key gets a new value now: this host has reached no quorum of NATS for some seconds, so the others would not know it, and nobody could say whether it was made.',
    remedy: 'See `holdfast cluster status`, and try again when this host reaches the others.',
  },
  HF_GATEWAY_KEY_ROTATIONS: {
    status: 409,
    what: 'The key {id} was rotated {limit} times.',
    remedy: 'Generate another one and revoke this one.',
  },
  HF_GATEWAY_RELOAD: {
    status: 422,
    what: 'The routes could not be loaded again: {reason}.',
    remedy: 'Correct plugins.config.ts; the routes serve as before, `holdfast gateway routes` lists them.',
  },
  HF_GATEWAY_BODY_CODING: {
    status: 400,
    what: 'The body is not what its Content-Encoding {coding} says.',
    remedy: 'Send it as it is, or compressed as the header says.',
  },
  HF_GATEWAY_TOOLS: {
    status: 409,
    what: 'There is nothing to accept: {reason}.',
    remedy: '`holdfast gateway tools list` shows whose tools changed.',
  },
  HF_GATEWAY_APPROVAL_UNKNOWN: {
    status: 404,
    what: 'No request for approval is known as {id}.',
    remedy:
      '`holdfast gateway approvals` lists them; one that is over gives its place to the next after a while.',
  },
  HF_GATEWAY_APPROVAL_UNANSWERED: {
    status: 503,
    what: 'Whether the request for approval {id} waits, or was just decided, is not known: no answer from {hosts}.',
    remedy:
      'Try again when that host answers (`holdfast cluster hosts`), or on that host: a request is decided once.',
  },
  HF_GATEWAY_APPROVAL_DECIDED: {
    status: 409,
    what: 'The request {id} does not wait any more: {state}.',
    remedy: 'Nothing was changed; the client may call again, and a person is then asked again.',
  },
  HF_GATEWAY_APPROVAL_LINK: {
    status: 403,
    what: 'The link is not valid: {reason}.',
    remedy: 'Use the whole link of the alert before its time is over, or `holdfast gateway approvals`.',
  },
  HF_GATEWAY_ROLLBACK: {
    status: 409,
    what: 'The route can not be rolled back: {reason}.',
    remedy:
      'Look at `holdfast gateway routes --json`: `before` of a route lists what served, with its revisions.',
  },
});
