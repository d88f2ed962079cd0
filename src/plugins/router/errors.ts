import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the router. */
export const RouterError = defineErrors({
  HF_ROUTER_NCID_MISMATCH: {
    status: 400,
    what: 'The posted ncid is not the current one, because somebody has saved since it was read.',
    remedy: 'Read /v1/config/active again, make the change on what you read, and post that.',
  },
  HF_ROUTER_NCID_REQUIRED: {
    status: 400,
    what: 'The posted config has no ncid.',
    remedy: 'Read /v1/config/active and post its ncid with the change.',
  },
  HF_ROUTER_TRANSACTION_PENDING: {
    status: 400,
    what: 'A config transaction is pending, so no other change is taken.',
    remedy: 'Commit or revert it, or wait: `holdfast status` shows its id and the seconds left.',
  },
  HF_ROUTER_TRANSACTION_NONE: {
    status: 400,
    what: 'No config transaction is pending, or its window has passed.',
    remedy: 'Read the active config: an uncommitted change has been reverted.',
  },
  HF_ROUTER_TRANSACTION_OTHER: {
    status: 400,
    what: 'Another transID holds the pending transaction.',
    remedy: 'Use the transID that opened it, shown by `holdfast status`.',
  },
  HF_ROUTER_TRANSACTION_USED: {
    status: 400,
    what: 'This transID has been committed or reverted before.',
    remedy: 'Make a fresh transID for every transaction.',
  },
  HF_ROUTER_FENCED: {
    status: 409,
    what: 'A later holder of the same work has written to this router, so the write of an earlier one is refused.',
    remedy:
      'Nothing, as a rule: that host ends the work when it hears that it lost the lease. `holdfast cluster leases` shows who holds it.',
  },
  HF_ROUTER_REQUEST_INVALID: {
    status: 400,
    what: 'The request is not understood: {reason}.',
    remedy:
      'Post a whole config with its ncid; transactionOp is append, commit or revert, transID a non-empty string.',
  },
  HF_ROUTER_CONFIG_INVALID: {
    status: 400,
    what: 'The config is not valid at {path}: {reason}.',
    remedy: 'Correct that field; nothing was applied.',
  },
  HF_ROUTER_BODY_ENCODING: {
    status: 415,
    what: 'A body with {what} is not supported here.',
    remedy: 'Send the body as it is, or with content encoding gzip; its JSON is in UTF-8.',
  },
  HF_ROUTER_STATIC_ROUTE: {
    status: 400,
    what: 'The config holds a static route at {path}: routing carries the WAN default policy only, and the next reapply would remove any other route; addressing is the durable lever.',
    remedy:
      'Remove the route, and give the leg an address in the prefix (`interface.<kind>.<name>.ipv6`); nothing was applied.',
  },
  HF_ROUTER_PLACEHOLDER: {
    status: 400,
    what: 'The config cannot be posted. At {path}, {reason}.',
    remedy:
      'Make a copy with `holdfast router get --out FILE` and keep its placeholders, or write the secret itself there.',
  },
  HF_ROUTER_CONTROL_FIELDS: {
    status: 400,
    what: '{file} holds {fields}. These fields control a write and are no part of a config.',
    remedy: 'Remove them from the file; the command adds the fields that its transaction needs.',
  },
  HF_ROUTER_FILE: {
    status: 400,
    what: '{file} cannot be used: {reason}.',
    remedy: 'Correct it, or name another.',
  },
  HF_ROUTER_COPY: {
    status: 400,
    what: 'No copy is written to {file}: {reason}.',
    remedy: 'Name a new file outside of every git work tree, in a folder that you may write to.',
  },
  HF_ROUTER_ENTRY: {
    status: 404,
    what: '{entry} does not name exactly one entry: {reason}.',
    remedy:
      'Name `active`, `seed`, a place in `holdfast router history` (1 is the newest), or the beginning of one ncid.',
  },
  HF_ROUTER_HISTORY: {
    status: 404,
    what: 'The history of the router at {url} cannot be read: {reason}.',
    remedy:
      'Set HOLDFAST_REDIS_URL (the option redisUrl of routerRemote) to the Redis of that router: database 0 holds its history.',
  },
  HF_ROUTER_BUSY: {
    status: 503,
    what: 'More than {limit} config writes are waiting.',
    remedy: 'Wait a moment, read the active config and try again.',
  },
  HF_ROUTER_APPLY_FAILED: {
    status: 500,
    what: 'The config could not be applied: {reason}.',
    remedy: 'The previous config is in force again; correct the change and post it anew.',
  },
  HF_ROUTER_STORE: {
    status: 500,
    what: 'The config store {file} failed: {reason}.',
    remedy: 'Check the disk and the rights of the data folder. The router serves what the store holds.',
  },
  HF_ROUTER_STORE_MISSING: {
    status: 404,
    what: 'There is no router config on {folder}: no router has run there yet.',
    remedy:
      'Start one with `holdfast start`, name another folder with --data-dir, or a router elsewhere with --url.',
  },
  HF_ROUTER_STORE_UNAVAILABLE: {
    status: 503,
    what: 'The config store at {store} is not available: {reason}. Nothing was changed.',
    remedy:
      'Start that Redis again, or correct HOLDFAST_REDIS_URL. Holdfast reconnects by itself; /healthz shows when it is connected.',
  },
  HF_ROUTER_STORE_DATABASE: {
    status: 500,
    what: 'The Redis URL names database {database}, and the router keeps its config in database 1: {found}.',
    remedy: 'Leave the index out of HOLDFAST_REDIS_URL.',
  },
  HF_ROUTER_GENERATE: {
    status: 500,
    what: 'The files of the DHCP and DNS daemons could not be made from {what}: {reason}.',
    remedy:
      'The previous config is in force again; correct that part, or make room on the disk, and post the change anew.',
  },
  HF_ROUTER_KERNEL: {
    status: 500,
    what: 'The kernel of this machine cannot be read: {reason}.',
    remedy:
      "Install iproute2 and run Holdfast with the rights to change the network, or set the router's `kernel` to 'memory'.",
  },
  HF_ROUTER_TOOL: {
    status: 500,
    what: 'The program {program} did not do its work: {reason}.',
    remedy:
      'Install it, give Holdfast the rights to run it, or correct what it complains about; it is run again.',
  },
  HF_ROUTER_SIMULATION: {
    status: 409,
    what: 'Nothing is simulated: {reason}.',
    remedy: 'Simulate on an embedded router with the memory kernel, and name a WAN of its config.',
  },
  HF_ROUTER_INTERFACE_UNKNOWN: {
    status: 404,
    what: 'There is no interface {intf}.',
    remedy: 'The names are the keys under `interface` of the active config.',
  },
  HF_ROUTER_UNREACHABLE: {
    status: 502,
    what: 'The router API gave no usable answer: {reason}.',
    remedy:
      'Check that the router runs and that HOLDFAST_ROUTER_URL or --url points at it. If it answered 401, name the file of its token (--token-file).',
  },
});
