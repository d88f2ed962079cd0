import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of the command line and replay. */
export const cliErrors = {
  HF_CLI_USAGE: {
    status: 400,
    what: '{reason}',
    remedy: 'See `holdfast {command} --help`.',
  },
  HF_CLI_COMMAND: {
    status: 400,
    what: '{reason}',
    remedy: 'See `holdfast --help` for the commands.',
  },
  HF_CLI_DATA_DIR: {
    status: 500,
    what: 'The data folder {dir} cannot be created: {reason}.',
    remedy: 'Name another folder with --data-dir, or correct the permissions of its parent folder.',
  },
  HF_REPLAY_CHANGE: {
    status: 400,
    what: 'The change cannot be tried: {reason}.',
    remedy:
      'See `holdfast replay what-if --help`; `holdfast log show <seq>` shows the event as it was recorded.',
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
} as const satisfies ErrorTable;
