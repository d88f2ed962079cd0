/** One row of the table. `{name}` is filled from the error's details. */
export interface ErrorEntry {
  /** What happened, as one sentence. */
  readonly what: string;
  /** What to do about it, as one sentence. */
  readonly mend: string;
  /** HTTP status when the error ends a request. */
  readonly status: number;
}

const entry = (status: number, what: string, mend: string): ErrorEntry => ({ status, what, mend });

/**
 * Every error that a person can meet. `docs/errors.md` is generated from this table, and a test proves that the
 * table, the page and the codes raised in `src/`, `bin/` and `scripts/` agree.
 */
export const errorTable = {
  HF_INTERNAL: entry(
    500,
    'Something failed that Holdfast did not foresee.',
    'Look for the same correlation id in the log lines; if it repeats, report it with `holdfast log show`.',
  ),

  // Before the runtime: raised by bin/ and scripts/, which run on Nodes that cannot import this table
  HF_BOOTSTRAP_INSTALL_FAILED: entry(
    500,
    'The packages could not be installed: npm ci failed.',
    'Read what npm says above it; check that npm reaches its registry (`npm ping`), then run the command again.',
  ),
  HF_BOOTSTRAP_INSTANCE_RUNNING: entry(
    500,
    'The packages must be installed anew, but an instance runs from this checkout.',
    'Stop that instance, then run the command again.',
  ),
  HF_BOOTSTRAP_NO_NODE: entry(
    500,
    'After the installation there is no Node 24.12 or newer.',
    'Run `npm rebuild node --ignore-scripts=false`, or put Node 24 first on the PATH.',
  ),
  HF_LAUNCH_NOT_BUILT: entry(
    500,
    'There is neither source nor a build of Holdfast beside its launcher.',
    'Run `npm run build`.',
  ),
  HF_LAUNCH_OLD_NODE: entry(
    500,
    'Holdfast needs Node 24.12 or newer, and found only an older one.',
    'Install Node 24, or run `npm ci` in the checkout, which brings its own.',
  ),

  // Configuration
  HF_CONFIG_NOT_FOUND: entry(
    500,
    'There is no configuration at {file}.',
    'Run the command where plugins.config.ts lies, or name it with --config FILE.',
  ),
  HF_CONFIG_LOAD: entry(
    500,
    '{file} could not be loaded: {reason}.',
    'Mend the file; `npm run types` shows type errors in it.',
  ),
  HF_CONFIG_OPTION: entry(
    500,
    '{file}: plugin {plugin}, option {option}: {reason}.',
    'Correct the option in {file}.{hint}',
  ),
  HF_CONFIG_SETTING: entry(500, '{file}: {setting}: {reason}.', 'Correct {setting} in {file}.{hint}'),
  HF_CONFIG_INVALID: entry(
    500,
    '{file} has {count} mistakes:{list}',
    'Correct them in {file}, or in the environment.',
  ),
  HF_CONFIG_PLUGIN: entry(500, '{file}: {reason}.', 'Correct the plugin list in {file}.'),
  HF_CONFIG_ENV: entry(
    500,
    '{name} holds a value that cannot be used: {reason}.',
    'Correct or unset {name}.',
  ),
  HF_CONFIG_SECRET_MODE: entry(
    500,
    'The secret file {file} may be read by others (mode {mode}).',
    'Run `chmod 600 {file}` and consider the secret leaked: rotate it.',
  ),
  HF_CONFIG_SECRET_INVALID: entry(
    500,
    'The secret file {file} does not hold what it should: {reason}.',
    'Put its content back: a key from a backup (what it sealed cannot be read without it), a token from its issuer.',
  ),
  HF_CONFIG_SECRET_MISSING: entry(
    500,
    'The secret file {file} cannot be opened ({reason}).',
    'Create it with mode 600, or correct the option that names it.',
  ),
  HF_CONFIG_SECRET_FOLDER: entry(
    500,
    'The folder of secrets {folder} may be changed by others (mode {mode}).',
    'Run `chmod 700 {folder}`, and look whether its files are still yours.',
  ),
  HF_SECRET_SEALED: entry(
    500,
    'A sealed body ({purpose}) cannot be opened: {reason}.',
    'Put back the file secrets/sealing-key of the data folder that sealed it; nothing else can open it.',
  ),

  // Plugins
  HF_PLUGIN_MISSING: entry(
    500,
    'Plugin {plugin} needs {token}, which no enabled plugin provides.',
    'Add a plugin that provides {token} to plugins.config.ts, or remove {plugin}.',
  ),
  HF_PLUGIN_CYCLE: entry(
    500,
    'Plugins need each other in a circle: {cycle}.',
    'Split what one of them provides, so that the circle opens.',
  ),
  HF_PLUGIN_CONFLICT: entry(
    500,
    '{what} is declared by both {first} and {second}.',
    'Keep one of the two plugins in plugins.config.ts, or rename what they share.',
  ),
  HF_PLUGIN_DEADLINE: entry(
    500,
    'Plugin {plugin} did not finish its {phase} within {ms} ms.',
    'Look at what {plugin} waits for; its own log lines carry plugin={plugin}.',
  ),
  HF_PLUGIN_FAILED: entry(
    500,
    'Plugin {plugin} failed in its {phase}: {reason}.',
    "Mend the cause; a plugin with onFailure 'continue' lets the rest run without it.",
  ),
  HF_PLUGIN_CONTRACT: entry(
    500,
    'Plugin {plugin} breaks its own definition: {reason}.',
    'Make `requires` and `provides` of its definition say what it uses and gives.',
  ),
  HF_PLUGIN_EARLY: entry(
    500,
    'Plugin {plugin} used ctx.services before it was started.',
    'Use services inside onStart, handlers and factories; register() only declares.',
  ),
  HF_PLUGIN_INTERRUPTED: entry(
    503,
    'The runtime was stopped before all plugins had started.',
    'Start it again when it is wanted; what had started has been stopped.',
  ),
  HF_PLUGIN_FROZEN: entry(
    500,
    'Plugin {plugin} tried to declare {what} after boot.',
    'Declare in register(); start() and later may only use what was declared.',
  ),
  HF_EFFECT_UNHANDLED: entry(
    500,
    'Actor type {actor} asks for effect {effect}, which no plugin handles.',
    'Enable the plugin that registers {effect}, or remove the actor.',
  ),
  HF_ROUTE_TARGET: entry(
    500,
    'A route of plugin {plugin} sends {topic} to actor type {actor}, which nobody registers.',
    'Register the actor, or correct the route.',
  ),

  // Actors and machines
  HF_ACTOR_UNKNOWN: entry(
    500,
    'Nothing is registered for actor {actor}.',
    'Enable the plugin that registers this actor type, or look for a typing error in the address.',
  ),
  HF_ACTOR_OVERLOADED: entry(
    503,
    'More than {limit} events wait for the log.',
    'Wait and try again; `holdfast status` says what the log waits for.',
  ),
  HF_EVENT_INVALID: entry(
    500,
    '{path} cannot be recorded: {reason}.',
    'Send plain data (strings, finite numbers, booleans, arrays, objects) under a type other than init.',
  ),
  HF_MACHINE_CONTEXT: entry(
    500,
    'A machine put something into {path} that is not plain data (null, a function, a date).',
    'Keep contexts to strings, finite numbers, booleans, arrays and objects; leave a field out instead of null.',
  ),
  HF_MACHINE_THREW: entry(
    500,
    'The machine of {actor} threw on event {event}: {reason}.',
    'Guards and assigns must be total; the event is recorded and the state is as before.',
  ),
  HF_MACHINE_IMPURE: entry(
    500,
    'Machine {machine} uses {what}, which replay could not repeat.',
    'Ask for an effect instead, and take its outcome as an event.',
  ),
  HF_MACHINE_VERSION: entry(
    500,
    'Actor {actor} was recorded with machine version {recorded}, this runtime has {current}.',
    "Give the plugin's actor definition an upcaster for version {recorded}, or run the release that wrote the log.",
  ),
  HF_EFFECT_TIMEOUT: entry(
    504,
    'Effect {effect} had no outcome within {ms} ms.',
    'Treat its result as unknown: read the system it touched before trying again.',
  ),

  // Log
  HF_LOG_LOCKED: entry(
    500,
    'Data folder {dir} is in use by process {pid}.',
    'Stop that process (kill {pid}), or start with another --data-dir.',
  ),
  HF_LOG_MISSING: entry(
    500,
    'There is no event log in {dir}.',
    'Name the right folder with --data-dir, or start Holdfast there once.',
  ),
  HF_LOG_FOLDER: entry(
    500,
    'The data folder {dir} cannot be used: {reason}.',
    'Make it writable for this user, mount its disk writable, or name another with --data-dir.',
  ),
  HF_LOG_FORMAT: entry(
    500,
    'The log in {dir} has format {found}, this runtime reads {known}.',
    'Use the release that wrote it, or export it there and import it here.',
  ),
  HF_LOG_CORRUPT: entry(
    500,
    'Record {seq} cannot be trusted: {reason}.',
    'Do not run on this log; `holdfast replay verify` shows what stands before it. Restore the folder from a copy.',
  ),
  HF_LOG_WRITE: entry(
    503,
    'The log cannot be written: {reason}.',
    'Free space on, or remount, the disk of the data folder; Holdfast goes on by itself.',
  ),
  HF_LOG_WAITING: entry(
    503,
    'The log cannot be written ({reason}), so this request is not decided yet; it may be carried out later.',
    'Read the state again before you repeat it; Holdfast goes on by itself when the log can be written.',
  ),
  HF_LOG_CLOSED: entry(503, 'The log is closed.', 'The runtime is stopping; try again when it is back.'),
  HF_LOG_DAMAGED: entry(
    500,
    'The database of the log is damaged: {reason}.',
    'Copy the folder, then save what can be read with `sqlite3 log.db .recover`; restore the folder from a copy.',
  ),
  HF_LOG_EXISTS: entry(
    409,
    'The folder {dir} holds an event log already.',
    'Name a folder without one with --data-dir; a log is never written over.',
  ),
  HF_LOG_RANGE: entry(400, 'There is no record {seq}.', 'The log holds records {first} to {last}.'),
  HF_PORTABLE_DAMAGED: entry(
    400,
    'The exported log {file} is damaged at line {line}: {reason}.',
    'Export it anew, or carry the file over again: compare its size and checksum at both ends.',
  ),
  HF_PORTABLE_EMPTY: entry(
    400,
    'No record is wanted: none of those from {from} to {to} fits the selection.',
    'Look with `holdfast log list` and the same flags which records there are.',
  ),
  HF_PORTABLE_FILTERED: entry(
    400,
    'The exported log {file} holds the records of some actors only, so no runtime can go on from it.',
    'Read and replay it as a file, or import an export that was made without --actor and --correlation.',
  ),
  HF_PORTABLE_FOREIGN: entry(
    400,
    '{file} is not an exported log: {reason}.',
    'Name a file that `holdfast log export` wrote, or a data folder.',
  ),
  HF_PORTABLE_FORMAT: entry(
    400,
    'The exported log {file} has format {found}, this release reads {known}.',
    'Read it with the release that wrote it, or a later one.',
  ),
  HF_PORTABLE_READ: entry(
    500,
    'The exported log {file} cannot be read: {reason}.',
    'Mend the rights of the file, or copy it to a disk that can be read.',
  ),
  HF_PORTABLE_WRITE: entry(
    500,
    'The log cannot be exported to {file}: {reason}.',
    'Name a file in a folder that can be written, on a disk with room, with --out.',
  ),

  // HTTP surfaces
  HF_HTTP_REQUEST_INVALID: entry(
    400,
    'The request is not valid HTTP: {reason}.',
    'Send it with a common HTTP client; behind a proxy, look at what the proxy makes of it.',
  ),
  HF_HTTP_REQUEST_SLOW: entry(
    408,
    'The request was not complete within {ms} ms.',
    'Send it faster, or raise the requestTimeoutMs option of the surface.',
  ),
  HF_HTTP_HEADERS_TOO_LARGE: entry(
    431,
    'The headers are larger than {limit} bytes.',
    'Send fewer or shorter ones.',
  ),
  HF_HTTP_PATH_TOO_LONG: entry(
    414,
    'A part of the path is longer than {limit} characters.',
    'Correct the path; no name on this surface is that long.',
  ),
  HF_HTTP_ORIGIN: entry(
    403,
    'A web page of another origin may not change anything here.',
    'Call from the command line, or add the host of the page to the allowedHosts option.',
  ),
  HF_HTTP_BODY_INVALID: entry(
    400,
    'The body is not valid JSON: {reason}.',
    'Send one JSON document in UTF-8.',
  ),
  HF_HTTP_BODY_TOO_LARGE: entry(
    413,
    'The body is larger than {limit} bytes.',
    'Send less, or raise the bodyLimit option of the surface.',
  ),
  HF_HTTP_MEDIA_TYPE: entry(
    415,
    'Content type {type} is not understood here.',
    'Send the body with `content-type: application/json`.',
  ),
  HF_HTTP_NOT_FOUND: entry(
    404,
    'There is nothing at {method} {path}.',
    'See the table of surfaces in README.md.',
  ),
  HF_HTTP_METHOD: entry(405, '{method} is not possible on {path}.', 'Use one of: {allow}.'),
  HF_HTTP_HOST: entry(
    421,
    'The Host header names a host that this surface does not serve.',
    'Call it by its address, or add the name to the allowedHosts option.',
  ),
  HF_HTTP_UNAUTHORIZED: entry(
    401,
    'This surface needs a bearer token.',
    'Send `authorization: Bearer <token>` with the token configured for it.',
  ),
  HF_HTTP_TOKEN_REQUIRED: entry(
    500,
    'Surface {surface} would listen on {host}, beyond this machine, without a token.',
    'Configure a token file for it, or bind it to 127.0.0.1.',
  ),
  HF_HTTP_LISTEN: entry(
    500,
    'Surface {surface} cannot listen on {host}:{port}: {reason}.',
    'Stop what holds the port, or choose another with {variable} (0 means any free one).',
  ),
  HF_HTTP_STOPPING: entry(503, 'Holdfast is stopping.', 'Try again when it is back.'),
  HF_HTTP_TIMEOUT: entry(
    504,
    'No decision was made within {ms} ms.',
    'The result is unknown: read the state again before you repeat the request.',
  ),

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
    'Name `active`, a place in `holdfast router history` (1 is the newest), or the beginning of one ncid.',
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

  // The control socket
  HF_CONTROL_UNREACHABLE: entry(
    500,
    'The instance on {dir} cannot be told: {reason}.',
    'Check with `holdfast status` that it runs, and that this is the user it runs as.',
  ),

  // Command line
  HF_CLI_USAGE: entry(400, '{reason}', 'See `holdfast {command} --help`.'),
  HF_CLI_COMMAND: entry(400, '{reason}', 'See `holdfast --help` for the commands.'),
  HF_CLI_DATA_DIR: entry(
    500,
    'The data folder {dir} cannot be made: {reason}.',
    'Name a folder that can be made with --data-dir, or mend the rights of the one above it.',
  ),
  HF_REPLAY_CHANGE: entry(
    400,
    'The change cannot be tried: {reason}.',
    'See `holdfast replay what-if --help`; `holdfast log show <seq>` has the event as it was recorded.',
  ),
  HF_REPLAY_MACHINES: entry(
    500,
    'A replay needs the machines that made the log, and there is no configuration at {file} that names their plugins.',
    'Run it where plugins.config.ts lies, or name the file with --config FILE.',
  ),
  HF_REPLAY_DIVERGED: entry(
    500,
    'Replay diverged at record {seq} of {actor}.',
    'Compare the machine with the one that wrote the log; the report above names expected and got.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorTable;
