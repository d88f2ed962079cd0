import { defineErrors } from '../core/kernel/errors/holdfast-error.ts';

/** Errors of the command line, and of the launcher and the installation before it. */
export const CliError = defineErrors({
  HF_CLI_COMMAND: {
    status: 400,
    what: '{reason}',
    remedy: 'See `holdfast --help` for the commands.',
  },
  HF_CLI_PLUGIN: {
    status: 400,
    what: '{reason}.',
    remedy: 'See `holdfast plugin new --help` for what a new plugin may be, and docs/guides/add-a-route.md.',
  },
  HF_CLI_DATA_DIR: {
    status: 500,
    what: 'The data folder {dir} cannot be created: {reason}.',
    remedy: 'Name another folder with --data-dir, or correct the permissions of its parent folder.',
  },
  HF_REPLAY_MACHINES: {
    status: 500,
    what: 'A replay needs the machines that made the log, and there is no configuration at {file} that names their plugins.',
    remedy: 'Run it in the folder of plugins.config.ts, or name the file with --config FILE.',
  },
  HF_CLI_TERMINAL: {
    status: 400,
    what: '`holdfast replay step` needs a terminal to read keys from and to draw on.',
    remedy:
      'In a script or a pipe, `holdfast replay at <seq>`, `replay explain <seq>` and `log list` show the same.',
  },
  HF_LOG_BODY_UNKNOWN: {
    status: 404,
    what: 'No body {fingerprint} is kept here.',
    remedy:
      '`holdfast log list --all` shows the fingerprints in its records; bodies that nothing needs are dropped automatically.',
  },
  HF_REPLAY_NOT_COMPARED: {
    status: 500,
    what: '{records} records were not compared, and --strict asks for all.',
    remedy:
      'Keep the older machines under `earlier` in the actor definitions, name the plugins with --config, or verify with the release that wrote the log.',
  },
  HF_REPLAY_DIVERGED: {
    status: 500,
    what: 'Replay diverged at record {seq} of {actor}.',
    remedy:
      'Compare the machine with the one that wrote the log; the report above shows the expected and the actual decision.',
  },
  HF_ADOPT_NAME: {
    status: 409,
    what: 'This host is called {own} in the cluster, and is to take the place of {host}.',
    remedy:
      'Set HOLDFAST_CLUSTER_HOST={host}, or the option `host` of the plugin, so that the others know it by that name.',
  },
  HF_ADOPT_RUNNING: {
    status: 409,
    what: 'The host {host} is still running.',
    remedy: 'Stop it first: two hosts of one name disturb each other. If it only seems to run, add --force.',
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
});
