import { type ErrorEntry, entry } from '../entry.ts';

/** Of the event log and its portable form. */
export const logErrors = {
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
  HF_LOG_UNTRUSTED: entry(
    500,
    'The log in {dir} is not what this runtime signed: {reason}.',
    'See `holdfast log verify`; restore the whole folder from one copy. To go on with it as it is, delete log-head and log-mark in secrets/.',
  ),
  HF_LOG_ARCHIVE: entry(
    500,
    'The log was not archived: {reason}. Nothing was deleted.',
    'Try it again; when it stays so, prune with the instance stopped.',
  ),
  HF_LOG_PRUNING: entry(409, 'The log in {dir} is being pruned already.', 'Wait until that is done.'),
  HF_LOG_SHREDDED: entry(
    410,
    'The body {fingerprint} was made unreadable at {at}.',
    'Nothing can bring it back; take the config from a copy of your own and post it.',
  ),
  HF_LOG_BODY_UNKNOWN: entry(
    404,
    'No body {fingerprint} is kept here.',
    'Fingerprints stand in the records of `holdfast log list --all`; bodies that nothing needs are dropped by themselves.',
  ),
  HF_LOG_GAP: entry(
    400,
    '{source} does not go on where what stands before it ends: {reason}.',
    'Name the archives in the order of their records, and the data folder last.',
  ),
  HF_LOG_UNSIGNED: entry(
    400,
    'Records {from} to {to} bear no signature of {key}.',
    'Have the log exported where its key lies, or verify without --public-key: then the chain alone is checked.',
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
    'Fix the rights of the file, or copy it to a disk that can be read.',
  ),
  HF_PORTABLE_WRITE: entry(
    500,
    'The log cannot be exported to {file}: {reason}.',
    'Name a file in a folder that can be written, on a disk with room, with --out.',
  ),
} as const satisfies Record<string, ErrorEntry>;
