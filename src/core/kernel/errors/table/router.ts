import { type ErrorEntry, entry } from '../entry.ts';

/** Of the router plugins. */
export const routerErrors = {
  // Router
  HF_ROUTER_NCID_MISMATCH: entry(
    400,
    'The posted ncid is not the current one: somebody saved in between.',
    'Read /v1/config/active again, make the change on what you read, and post that.',
  ),
  HF_ROUTER_NCID_REQUIRED: entry(
    400,
    'The posted config has no ncid.',
    'Read /v1/config/active and post its ncid with the change.',
  ),
  HF_ROUTER_TRANSACTION_PENDING: entry(
    400,
    'A config transaction is pending, so no other change is taken.',
    'Commit or revert it, or wait: `holdfast status` shows its id and the seconds left.',
  ),
  HF_ROUTER_TRANSACTION_NONE: entry(
    400,
    'No config transaction is pending, or its window has passed.',
    'Read the active config: an uncommitted change has been reverted.',
  ),
  HF_ROUTER_TRANSACTION_OTHER: entry(
    400,
    'Another transID holds the pending transaction.',
    'Use the transID that opened it, shown by `holdfast status`.',
  ),
  HF_ROUTER_TRANSACTION_USED: entry(
    400,
    'This transID has been committed or reverted before.',
    'Make a fresh transID for every transaction.',
  ),
  HF_ROUTER_REQUEST_INVALID: entry(
    400,
    'The request is not understood: {reason}.',
    'Post a whole config with its ncid; transactionOp is append, commit or revert, transID a non-empty string.',
  ),
  HF_ROUTER_CONFIG_INVALID: entry(
    400,
    'The config is not valid at {path}: {reason}.',
    'Correct that field; nothing was applied.',
  ),
  HF_ROUTER_STATIC_ROUTE: entry(
    400,
    'The config holds a static route at {path}: routing carries the WAN default policy only, and a route added beside it is gone with the next reapply; addressing is the durable lever.',
    'Take the route out, and give the leg an address in the wanted prefix (`interface.<kind>.<name>.ipv6`); nothing was applied.',
  ),
  HF_ROUTER_PLACEHOLDER: entry(
    400,
    'The config cannot be posted, for at {path} {reason}.',
    'Take a copy with `holdfast router get --out FILE`: its placeholders are understood. Or write the secret itself there.',
  ),
  HF_ROUTER_CONTROL_FIELDS: entry(
    400,
    '{file} holds {fields}: such fields steer a write and are no part of a config.',
    'Take them out of the file; the command itself adds what its transaction needs.',
  ),
  HF_ROUTER_FILE: entry(400, '{file} cannot be used: {reason}.', 'Correct it, or name another.'),
  HF_ROUTER_COPY: entry(
    400,
    'No copy is written to {file}: {reason}.',
    'Name a new file outside of every git work tree, in a folder that you may write to.',
  ),
  HF_ROUTER_ENTRY: entry(
    404,
    'There is no one entry {entry}: {reason}.',
    'Name `active`, `seed`, a place in `holdfast router history` (1 is the newest), or the beginning of one ncid.',
  ),
  HF_ROUTER_BUSY: entry(
    503,
    'More than {limit} config writes wait for their turn.',
    'Wait a moment, read the active config and try again.',
  ),
  HF_ROUTER_APPLY_FAILED: entry(
    500,
    'The config could not be applied: {reason}.',
    'The previous config is in force again; correct the change and post it anew.',
  ),
  HF_ROUTER_STORE: entry(
    500,
    'The config store {file} failed: {reason}.',
    'Check the disk and the rights of the data folder; what the router serves is what the store holds.',
  ),
  HF_ROUTER_STORE_MISSING: entry(
    404,
    'There is no router config on {folder}: no router has run there yet.',
    'Start one with `holdfast start`, name another folder with --data-dir, or a router elsewhere with --url.',
  ),
  HF_ROUTER_STORE_UNAVAILABLE: entry(
    503,
    'The config store at {store} is not available: {reason}. Nothing was changed.',
    'Bring that Redis back, or correct HOLDFAST_REDIS_URL; it is tried again by itself, and /healthz says when it is back.',
  ),
  HF_ROUTER_STORE_DATABASE: entry(
    500,
    'The Redis URL names database {database}, and the router keeps its config in database 1: {found}.',
    'Leave the index out of HOLDFAST_REDIS_URL.',
  ),
  HF_REDIS_URL: entry(
    400,
    'This is not the URL of a Redis.',
    'Write it as redis://[user:password@]host[:port], rediss:// for TLS, or unix:///path/of/the/socket.',
  ),
  HF_ROUTER_GENERATE: entry(
    500,
    'The files of the DHCP and DNS daemons could not be made from {what}: {reason}.',
    'The previous config is in force again; correct that part, or make room on the disk, and post the change anew.',
  ),
  HF_ROUTER_KERNEL: entry(
    500,
    'The kernel of this machine cannot be asked: {reason}.',
    "Install iproute2 and run Holdfast with the rights to change the network, or set the router's `kernel` to 'memory'.",
  ),
  HF_ROUTER_SIMULATION: entry(
    409,
    'Nothing is simulated: {reason}.',
    'Simulate on an embedded router with the memory kernel, and name a WAN of its config.',
  ),
  HF_ROUTER_INTERFACE_UNKNOWN: entry(
    404,
    'There is no interface {intf}.',
    'The names are the keys under `interface` of the active config.',
  ),
  HF_ROUTER_UNREACHABLE: entry(
    502,
    'The router API gave no usable answer: {reason}.',
    'Check that the router runs and that HOLDFAST_ROUTER_URL points at it.',
  ),
} as const satisfies Record<string, ErrorEntry>;
