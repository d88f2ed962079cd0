import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Why a command has no answer when the instance lacks this plugin. */
export const NO_COLLECTOR = 'it runs no collector plugin';

/** Errors of the collector: its keys, findings and probe. */
export const CollectorError = defineErrors({
  HF_COLLECTOR_NO_KEY: {
    status: 503,
    what: 'There is no ingest key: {reason}.',
    remedy:
      '`holdfast doctor stack` shows what the collector config lacks; the UI makes the key at its first start.',
  },
  HF_COLLECTOR_ROTATION: {
    status: 409,
    what: 'The ingest key is not rotated: {reason}.',
    remedy:
      '`holdfast stack rotate-ingest-key --show` shows how the rotation stands, `holdfast stack secrets` what each key is for.',
  },
  HF_COLLECTOR_ADOPTION: {
    status: 409,
    what: 'The ingest key in use is not stored: {reason}.',
    remedy: '`holdfast stack key-parity` shows where which key is.',
  },
  HF_COLLECTOR_HOSTS: {
    status: 503,
    what: 'The change of the ingest key is not in force yet on {hosts}.',
    remedy:
      'The rotation tries again; `holdfast cluster status` shows which hosts are there, and `holdfast stack rotate-ingest-key --resume` goes on where it gave up.',
  },
  HF_COLLECTOR_UI: {
    status: 502,
    what: 'The UI made no new ingest key: {reason}.',
    remedy:
      "Check the collector plugin's option `ui`, or leave it out and make the key in the UI: Team Settings, API Keys.",
  },
});
