import { type ErrorEntry, entry } from '../entry.ts';

/** Of the command line. */
export const cliErrors = {
  // Command line
  HF_CLI_USAGE: entry(400, '{reason}', 'See `holdfast {command} --help`.'),
  HF_CLI_COMMAND: entry(400, '{reason}', 'See `holdfast --help` for the commands.'),
  HF_CLI_DATA_DIR: entry(
    500,
    'The data folder {dir} cannot be made: {reason}.',
    'Name a folder that can be made with --data-dir, or remedy the rights of the one above it.',
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
  HF_CLI_TERMINAL: entry(
    400,
    '`holdfast replay step` needs a terminal to read keys from and to draw on.',
    'In a script or a pipe, `holdfast replay at <seq>`, `replay explain <seq>` and `log list` tell the same.',
  ),
  HF_REPLAY_NOT_COMPARED: entry(
    500,
    '{records} records were not compared, and --strict asks for all.',
    'Keep the older machines under `earlier` in the actor definitions, name the plugins with --config, or verify with the release that wrote the log.',
  ),
  HF_REPLAY_DIVERGED: entry(
    500,
    'Replay diverged at record {seq} of {actor}.',
    'Compare the machine with the one that wrote the log; the report above names expected and got.',
  ),
} as const satisfies Record<string, ErrorEntry>;
