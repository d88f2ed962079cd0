import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the columnar database. */
export const ColumnarError = defineErrors({
  HF_COLUMNAR_AGENT_TABLE: {
    status: 422,
    what: 'The table {table} of an agent cannot be made, read or changed so: {reason}.',
    remedy: 'Look at its columns with the tool `tables`, and change the request.',
  },
  HF_COLUMNAR_UNREACHABLE: {
    status: 503,
    what: 'The columnar database ({place}) cannot be reached: {reason}.',
    remedy:
      'Check that it runs and that HOLDFAST_CLICKHOUSE_URL names its HTTP port (8123, or the TLS proxy); it is tried again by itself.',
  },
  HF_COLUMNAR_CREDENTIALS: {
    status: 503,
    what: 'The columnar database ({place}) does not accept the user or the password: {reason}.',
    remedy:
      'Set HOLDFAST_CLICKHOUSE_USER, and the password by HOLDFAST_CLICKHOUSE_PASSWORD_SECRET (its place in the secrets store) or HOLDFAST_CLICKHOUSE_PASSWORD_FILE; it is read again at the next try.',
  },
  HF_COLUMNAR_OLD: {
    status: 503,
    what: 'The columnar database ({place}) is too old: it is ClickHouse {version}, and Holdfast needs {least} or newer.',
    remedy:
      'Upgrade the server, or name another one with HOLDFAST_CLICKHOUSE_URL; without that variable the embedded engine is used.',
  },
  HF_COLUMNAR_QUERY: {
    status: 400,
    what: 'The columnar database refused the query: {reason}.',
    remedy:
      'Fix the query; `holdfast stack query "SHOW TABLES"` lists the tables, and `DESCRIBE <table>` their columns.',
  },
  HF_COLUMNAR_TIMEOUT: {
    status: 504,
    what: 'The columnar database did not finish within {seconds} s.',
    remedy: 'Ask for a shorter time or fewer rows, or allow more with --timeout.',
  },
  HF_COLUMNAR_FILTER: {
    status: 400,
    what: 'What is filled in as {name} is not understood: {reason}.',
    remedy: 'Change it, or leave it empty.',
  },
  HF_COLUMNAR_REFUSED: {
    status: 400,
    what: 'This query is not run: {reason}.',
    remedy:
      'Ask one statement that reads: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN or EXISTS, of the tables of the database alone.',
  },
  HF_COLUMNAR_BUSY: {
    status: 503,
    what: 'The columnar database has too much to do: {reason}.',
    remedy:
      'Try again in a moment; if this lasts, find out what writes and queries so much (`holdfast doctor stack`).',
  },
  HF_COLUMNAR_FULL: {
    status: 507,
    what: 'The columnar database cannot write: {reason}.',
    remedy: 'Free space on its disk, or keep the signals for a shorter time (`retentionDays`).',
  },
  HF_COLUMNAR_DAMAGED: {
    status: 503,
    what: 'The columnar database cannot read what it has stored: {reason}.',
    remedy:
      'Check its disk; `holdfast doctor stack` names the damaged parts. The rest can be queried: leave out the time or the table that is damaged.',
  },
  HF_COLUMNAR_ANSWER: {
    status: 502,
    what: '{place} did not give a complete answer of a columnar database: {reason}.',
    remedy:
      'Check that HOLDFAST_CLICKHOUSE_URL names the database itself, and what stands between it and this process.',
  },
  HF_COLUMNAR_SCHEMA: {
    status: 503,
    what: 'The table {table} of the columnar database cannot be used: {reason}.',
    remedy: 'Let the user of Holdfast create the table, or create it as docs/stack.md shows.',
  },
  HF_COLUMNAR_ENGINE_MISSING: {
    status: 503,
    what: 'The embedded columnar database cannot be loaded: {reason}.',
    remedy:
      'Run npm ci on Linux x64 or arm64 (the package chdb is optional), or name a server with HOLDFAST_CLICKHOUSE_URL.',
  },
  HF_COLUMNAR_FOLDER: {
    status: 503,
    what: 'The folder {folder} of the embedded columnar database cannot be opened: {reason}.',
    remedy:
      'If a process has it open, stop that process, or query through it (`holdfast stack query`). If the folder is damaged or of a newer engine, move it away, or run the version that wrote it. Holdfast tries again by itself.',
  },
  HF_COLUMNAR_NOT_RUNNING: {
    status: 503,
    what: 'The columnar database cannot be queried: {reason}.',
    remedy:
      'Start Holdfast (`npm run up`), whose commands then query it, or name a server with HOLDFAST_CLICKHOUSE_URL.',
  },
  HF_COLUMNAR_BACKUP: {
    status: 500,
    what: 'The backup of the columnar database was not done: {reason}.',
    remedy: 'Correct what it names, then run `holdfast backup columnar` again; `--list` shows what there is.',
  },
  HF_COLUMNAR_WRONG_TABLE: {
    status: 400,
    what: 'The metric {metric} is not in {queried}: {found}. It has no rows there even if the pipeline works.',
    remedy: 'Query the right table: {query}',
  },
  HF_COLUMNAR_RAW_TARGET: {
    status: 400,
    what: 'This query shows or groups the raw http.target, which may carry a key and differs from call to call.',
    remedy: 'Group by the server that it names: {query}',
  },
});
