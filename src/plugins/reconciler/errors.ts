import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the reconciler's operations. */
export const ReconcilerError = defineErrors({
  HF_RECONCILER_ADOPTION: {
    status: 409,
    what: 'The legs were not adopted: {reason}.',
    remedy: 'Look at the list with `holdfast router adopt`, and confirm what it shows.',
  },
  HF_RECONCILER_DRILL: {
    status: 409,
    what: 'The drill did not begin: {reason}.',
    remedy: 'See `holdfast status` and `holdfast doctor router`; nothing was changed.',
  },
  HF_RECONCILER_UNIT: {
    status: 500,
    what: '`{command}` failed: {reason}.',
    remedy: 'Run it as a user that may stop and start units, on the host of the unit.',
  },
});
