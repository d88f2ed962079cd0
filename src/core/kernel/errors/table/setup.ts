import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of setup: the launcher, configuration and secrets. */
export const setupErrors = {
  HF_REDIS_URL: {
    status: 400,
    what: 'This is not the URL of a Redis.',
    remedy:
      'Write it as redis://[user:password@]host[:port], rediss:// for TLS, or unix:///path/of/the/socket.',
  },
  HF_BOOTSTRAP_INSTALL_FAILED: {
    status: 500,
    what: 'The packages could not be installed: npm ci failed.',
    remedy:
      'Read what npm says above it; check that npm reaches its registry (`npm ping`), then run the command again.',
  },
  HF_BOOTSTRAP_INSTANCE_RUNNING: {
    status: 500,
    what: 'The packages must be installed again, but an instance runs from this checkout.',
    remedy: 'Stop that instance, then run the command again.',
  },
  HF_BOOTSTRAP_NO_NODE: {
    status: 500,
    what: 'After the installation there is no Node 24.12 or newer.',
    remedy: 'Run `npm rebuild node --ignore-scripts=false`, or put Node 24 first on the PATH.',
  },
  HF_LAUNCH_NOT_BUILT: {
    status: 500,
    what: 'There is neither source nor a build of Holdfast beside its launcher.',
    remedy: 'Run `npm run build`.',
  },
  HF_LAUNCH_OLD_NODE: {
    status: 500,
    what: 'Holdfast needs Node 24.12 or newer, and found only an older one.',
    remedy: 'Install Node 24, or run `npm ci` in the checkout, which brings its own.',
  },
  HF_CONFIG_NOT_FOUND: {
    status: 500,
    what: 'There is no configuration at {file}.',
    remedy: 'Run the command in the folder of plugins.config.ts, or name the file with --config FILE.',
  },
  HF_CONFIG_LOAD: {
    status: 500,
    what: '{file} could not be loaded: {reason}.',
    remedy: 'Fix the file; `npm run types` shows type errors in it.',
  },
  HF_CONFIG_OPTION: {
    status: 500,
    what: '{file}: plugin {plugin}, option {option}: {reason}.',
    remedy: 'Correct the option in {file}.{hint}',
  },
  HF_CONFIG_SETTING: {
    status: 500,
    what: '{file}: {setting}: {reason}.',
    remedy: 'Correct {setting} in {file}.{hint}',
  },
  HF_CONFIG_INVALID: {
    status: 500,
    what: '{file} has {count} mistakes:{list}',
    remedy: 'Correct them in {file}, or in the environment.',
  },
  HF_CONFIG_PLUGIN: {
    status: 500,
    what: '{file}: {reason}.',
    remedy: 'Correct the plugin list in {file}.',
  },
  HF_CONFIG_ENV: {
    status: 500,
    what: 'The value of {name} cannot be used: {reason}.',
    remedy: 'Correct or unset {name}.',
  },
  HF_CONFIG_SECRET_MODE: {
    status: 500,
    what: 'The secret file {file} may be read by others (mode {mode}).',
    remedy: 'Run `chmod 600 {file}` and consider the secret leaked: rotate it.',
  },
  HF_CONFIG_SECRET_INVALID: {
    status: 500,
    what: 'The secret file {file} does not hold what it should: {reason}.',
    remedy:
      'Put its content back: a key from a backup (data that it sealed cannot be read without it), a token from its issuer.',
  },
  HF_CONFIG_SECRET_MISSING: {
    status: 500,
    what: 'The secret {file} cannot be read ({reason}).',
    remedy: 'Create it (a file with mode 600), or correct the option that names it.',
  },
  HF_CONFIG_SECRET_FOLDER: {
    status: 500,
    what: 'The folder of secrets {folder} may be changed by others (mode {mode}).',
    remedy: 'Run `chmod 700 {folder}`, and check that its files are still yours.',
  },
  HF_SECRET_SEALED: {
    status: 500,
    what: 'A sealed body ({purpose}) cannot be opened: {reason}.',
    remedy:
      'Put back the file secrets/sealing-key of the data folder that sealed it; nothing else can open it.',
  },
} as const satisfies ErrorTable;
