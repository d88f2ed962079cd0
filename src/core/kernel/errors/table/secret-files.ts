import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of files that only their owner may read: the log's keys, and every other secret that is kept in a file. */
export const secretFileErrors = {
  HF_CONFIG_SECRET_MODE: {
    status: 500,
    what: 'The secret file {file} may be read by others (mode {mode}).',
    remedy: 'Run `chmod 600 {file}` and consider the secret leaked: rotate it.',
  },
  HF_CONFIG_SECRET_INVALID: {
    status: 500,
    what: 'The secret file {file} does not hold what it should: {reason}.',
    remedy:
      'Put its content back: a key from a backup (data that it sealed cannot be read without it), any other secret from its issuer.',
  },
  HF_CONFIG_SECRET_MISSING: {
    status: 500,
    what: 'The secret {file} cannot be read ({reason}).',
    remedy: 'Create it (a file with mode 600), or correct the option that names it.',
  },
  HF_CONFIG_SECRET_OWNER: {
    status: 500,
    what: 'The secret file {file} belongs to {owner}; only a file of root or of {user} is used.',
    remedy: 'Check what it holds, then run `chown` on it; or run the command as its owner (`sudo -u`).',
  },
  HF_CONFIG_SECRET_FOLDER: {
    status: 500,
    what: 'Others could put another file in the place of the secret {file}: {reason}.',
    remedy:
      'Run `chmod go-w` (or `chown`) on what it names, and check that the file is still yours; or put it elsewhere. Where nobody else uses the machine, as in a container, set HOLDFAST_SOLE_USER=1.',
  },
} as const satisfies ErrorTable;
