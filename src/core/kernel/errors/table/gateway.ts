import { type ErrorEntry, entry } from '../entry.ts';

/** Of the MCP gateway. */
export const gatewayErrors = {
  HF_GATEWAY_ROUTE: entry(
    500,
    'The route can not be served: {variable}: {reason}.',
    'Correct it; the other routes go on meanwhile, and `holdfast gateway routes` lists them all.',
  ),
  HF_GATEWAY_KEY_REQUEST: entry(
    400,
    'The request is not valid: {field}: {reason}.',
    'Correct that field; docs/gateway.md has them all.',
  ),
  HF_GATEWAY_KEY_UNKNOWN: entry(
    404,
    'No key is known by {name}.',
    '`holdfast gateway keys list` and GET /key/list show ids and aliases.',
  ),
  HF_GATEWAY_KEY_AMBIGUOUS: entry(
    409,
    'More than one key has the alias {name}.',
    'Name the one that is meant by its id, as `holdfast gateway keys list` shows it.',
  ),
  HF_GATEWAY_KEY_EXISTS: entry(
    409,
    'That key value is taken already, by {id}.',
    'Change that key instead, or use another value; a value that was ever used for a key is not used again.',
  ),
  HF_GATEWAY_KEY_ALIAS: entry(
    409,
    'The alias {alias} is taken by the key {id}.',
    'Use another alias, or `holdfast gateway keys revoke {id}` first; `keys rotate` gives that key another value.',
  ),
  HF_GATEWAY_KEY_REVOKED: entry(409, 'The key {id} is revoked, and stays so.', 'Generate another one.'),
  HF_GATEWAY_KEY_ROTATIONS: entry(
    409,
    'The key {id} was rotated {limit} times.',
    'Generate another one and revoke this one.',
  ),
  HF_GATEWAY_RELOAD: entry(
    422,
    'The routes could not be loaded again: {reason}.',
    'Correct plugins.config.ts; the routes serve as before, `holdfast gateway routes` lists them.',
  ),
  HF_GATEWAY_ROLLBACK: entry(
    409,
    'The route can not be rolled back: {reason}.',
    'Look at `holdfast gateway routes --json`: `before` of a route lists what served, with its revisions.',
  ),
} as const satisfies Record<string, ErrorEntry>;
