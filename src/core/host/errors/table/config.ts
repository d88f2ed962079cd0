import type { ErrorTable } from '../../../kernel/errors/holdfast-error.ts';

/** Errors of configuration and of what a command was given. */
export const configErrors = {
  HF_REDIS_URL: {
    status: 400,
    what: 'This is not the URL of a Redis.',
    remedy:
      'Write it as redis://[user:password@]host[:port], rediss:// for TLS, or unix:///path/of/the/socket.',
  },
  HF_CONFIG_NOT_FOUND: {
    status: 500,
    what: 'There is no configuration at {file}.',
    remedy: 'Run the command in the folder of plugins.config.ts, or name the file with --config FILE.',
  },
  HF_CONFIG_OWNER: {
    status: 500,
    what: '{file} is not run, because others could have written it: {reason}.',
    remedy:
      'If you trust it, name it: --config {file}. Otherwise run as its owner, or run `chown` and `chmod go-w` on the file and its folder.',
  },
  HF_CONFIG_DATA_OWNER: {
    status: 500,
    what: '{dir} was found in the working directory and not named, and others could have written it: {reason}.',
    remedy:
      'If you trust what is in it, name it: --data-dir {dir}. Otherwise run as its owner (`sudo -u`), or in a folder of your own.',
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
  HF_SECRET_SEALED: {
    status: 500,
    what: 'A sealed body ({purpose}) cannot be opened: {reason}.',
    remedy:
      'Put back the file secrets/sealing-key of the data folder that sealed it; nothing else can open it.',
  },
  HF_CLI_USAGE: {
    status: 400,
    what: '{reason}',
    remedy: 'See `holdfast {command} --help`.',
  },
} as const satisfies ErrorTable;
