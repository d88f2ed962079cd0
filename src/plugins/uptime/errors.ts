import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the push client. */
export const UptimeError = defineErrors({
  HF_UPTIME_TOKEN: {
    status: 500,
    what: 'There is no usable push token for the monitor {monitor}: {reason}.',
    remedy:
      'Put the token alone into {place}, mode 0600; the monitor shows it in its push URL, after /api/push/.',
  },
  HF_UPTIME_NONE: {
    status: 503,
    what: 'There is no uptime monitor to push to: HOLDFAST_UPTIME_URL is not set, and no instance with one runs on {dir}.',
    remedy:
      'Set HOLDFAST_UPTIME_URL to the base of a monitor, e.g. http://uptime:3001, or start Holdfast with the plugin uptime-monitor.',
  },
});
