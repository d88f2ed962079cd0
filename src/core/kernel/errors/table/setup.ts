import { type ErrorEntry, entry } from '../entry.ts';

/** Before anything runs: installation, configuration, secret files. */
export const setupErrors = {
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
    'Fix the file; `npm run types` shows type errors in it.',
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
    'The secret {file} cannot be read ({reason}).',
    'Create it (a file with mode 600), or correct the option that names it.',
  ),
  HF_CONFIG_SECRET_FOLDER: entry(
    500,
    'The folder of secrets {folder} may be changed by others (mode {mode}).',
    'Run `chmod 700 {folder}`, and look whether its files are still yours.',
  ),
  HF_SECRETS_UNREACHABLE: entry(
    502,
    'The secrets store at {place} gave no usable answer: {reason}.',
    'Look whether it runs, is unsealed and is reached from here; nothing was changed unless its own log says so.',
  ),
  HF_SECRETS_REFUSED: entry(
    502,
    'The secrets store refuses to {what} {place}.',
    "Give the policy of Holdfast's token the rights read, create, update and patch on that path, or renew the token.",
  ),
  HF_SECRETS_CONFLICT: entry(
    409,
    'The secret {place} was changed by somebody else while it was written.',
    'Look who writes there, and do it again.',
  ),
  HF_SECRET_SEALED: entry(
    500,
    'A sealed body ({purpose}) cannot be opened: {reason}.',
    'Put back the file secrets/sealing-key of the data folder that sealed it; nothing else can open it.',
  ),
} as const satisfies Record<string, ErrorEntry>;
