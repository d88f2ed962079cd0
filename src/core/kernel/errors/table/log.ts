import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of the event log and its portable form. */
export const logErrors = {
  HF_LOG_LOCKED: {
    status: 500,
    what: 'Data folder {dir} is in use by process {pid}.',
    remedy: 'Stop that process (kill {pid}), or name another folder with --data-dir.',
  },
  HF_LOG_MISSING: {
    status: 500,
    what: 'There is no event log in {dir}.',
    remedy: 'Name the right folder with --data-dir, or start Holdfast there once.',
  },
  HF_LOG_FOLDER: {
    status: 500,
    what: 'The data folder {dir} cannot be used: {reason}.',
    remedy: 'Make it writable for this user, mount its disk writable, or name another with --data-dir.',
  },
  HF_LOG_UNREADABLE: {
    status: 500,
    what: '{file} may not be read by {user}, so nothing is known of what is there.',
    remedy: 'Run the command as its owner: `sudo -u OWNER holdfast …`, where `ls -ld {dir}` shows the OWNER.',
  },
  HF_LOG_OWNER: {
    status: 500,
    what: 'The data folder {dir} is not only in the hands of root and of {user}: {reason}.',
    remedy:
      'Run `chmod go-w` or `chown` on what it names, run the command as its owner (`sudo -u`), or name another folder with --data-dir. Where nobody else uses the machine, as in a container, set HOLDFAST_SOLE_USER=1.',
  },
  HF_LOG_FORMAT: {
    status: 500,
    what: 'The log in {dir} has format {found}, this runtime reads {supported}.',
    remedy: 'Use the release that wrote it, or export it there and import it here.',
  },
  HF_LOG_CORRUPT: {
    status: 500,
    what: 'Record {seq} cannot be trusted: {reason}.',
    remedy:
      'Do not run on this log; `holdfast replay verify` shows which records before it are sound. Restore the folder from a copy, or save the rest with `holdfast log repair`.',
  },
  HF_LOG_UNTRUSTED: {
    status: 500,
    what: 'The log in {dir} is not what this runtime signed: {reason}.',
    remedy:
      'See `holdfast log verify`; restore the whole folder from one copy. To use it as it is, delete log-head and log-mark in secrets/.',
  },
  HF_LOG_REWRITTEN: {
    status: 500,
    what: 'Records {from} to {to} are not those that the witness {place} got at {at}: {reason}.',
    remedy:
      'Somebody who had the signing key rewrote the log, or an older copy was restored. Keep the folder as it is, take the records from a copy, and make a new key.',
  },
  HF_WITNESS_READ: {
    status: 400,
    what: 'The heads of the witness {file} cannot be read: {reason}.',
    remedy: 'Name the file that data.witness appends to, or one with the heads that were posted, one a line.',
  },
  HF_LOG_SHREDDED: {
    status: 410,
    what: 'The body {fingerprint} was made unreadable at {at}.',
    remedy: 'Nothing can bring it back; take the config from a copy of your own and post it.',
  },
  HF_LOG_SOUND: {
    status: 409,
    what: 'The log in {dir} is not damaged.',
    remedy:
      'There is nothing to repair. A log that was rewritten with its own key is no damage: see `holdfast log verify --witness`.',
  },
  HF_LOG_REPAIRED: {
    status: 409,
    what: 'Records {from} to {to} are missing since a repair, and an export or archive must be whole.',
    remedy: 'Export what stands before and behind them, each with --from and --to.',
  },
  HF_LOG_LOST: {
    status: 500,
    what: 'Not one record of the log can be read.',
    remedy: 'Restore the folder from a copy; the damaged files are as they were.',
  },
  HF_LOG_GAP: {
    status: 400,
    what: '{source} does not continue the records before it: {reason}.',
    remedy: 'Name the archives in the order of their records, and the data folder last.',
  },
  HF_LOG_UNSIGNED: {
    status: 400,
    what: 'Records {from} to {to} have no signature of {key}.',
    remedy:
      'Export the log on the machine that has its key, or verify without --public-key: then only the chain is checked.',
  },
  HF_LOG_WRITE: {
    status: 503,
    what: 'The log cannot be written: {reason}.',
    remedy: 'Free space on the disk of the data folder, or remount it; Holdfast then continues by itself.',
  },
  HF_LOG_CLOSED: {
    status: 503,
    what: 'The log is closed.',
    remedy: 'The runtime is stopping; try again when it is back.',
  },
  HF_LOG_DAMAGED: {
    status: 500,
    what: 'The database of the log is damaged: {reason}.',
    remedy:
      'Copy the folder; restore it from an earlier copy, or save what can be read with `holdfast log repair`.',
  },
  HF_LOG_EXISTS: {
    status: 409,
    what: 'The folder {dir} holds an event log already.',
    remedy: 'Name a folder without one with --data-dir; a log is never overwritten.',
  },
  HF_LOG_RANGE: {
    status: 400,
    what: 'There is no record {seq}.',
    remedy: 'The log holds records {first} to {last}.',
  },
  HF_PORTABLE_DAMAGED: {
    status: 400,
    what: 'The exported log {file} is damaged at line {line}: {reason}.',
    remedy: 'Export it again, or copy the file again and compare its size and checksum on both machines.',
  },
  HF_PORTABLE_EMPTY: {
    status: 400,
    what: 'No record from {from} to {to} matches the selection.',
    remedy: 'List the records with `holdfast log list` and the same flags.',
  },
  HF_PORTABLE_FILTERED: {
    status: 400,
    what: 'The exported log {file} holds the records of some actors only, so no runtime can continue from it.',
    remedy:
      'Read and replay it as a file, or import an export that was made without --actor and --correlation.',
  },
  HF_PORTABLE_FOREIGN: {
    status: 400,
    what: '{file} is not an exported log: {reason}.',
    remedy: 'Name a file that `holdfast log export` wrote, or a data folder.',
  },
  HF_PORTABLE_FORMAT: {
    status: 400,
    what: 'The exported log {file} has format {found}, this release reads {supported}.',
    remedy: 'Read it with the release that wrote it, or a later one.',
  },
  HF_PORTABLE_READ: {
    status: 500,
    what: 'The exported log {file} cannot be read: {reason}.',
    remedy: 'Correct the permissions of the file, or copy it to a disk that can be read.',
  },
  HF_PORTABLE_WRITE: {
    status: 500,
    what: 'The log cannot be exported to {file}: {reason}.',
    remedy: 'Name a file in a folder that can be written, on a disk with room, with --out.',
  },
} as const satisfies ErrorTable;
