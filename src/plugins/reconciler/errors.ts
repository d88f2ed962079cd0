import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the reconciler's operations. */
export const ReconcilerError = defineErrors({
  HF_RECONCILER_ADOPTION: {
    status: 409,
    what: 'The legs were not adopted: {reason}.',
    remedy: 'Look at the list with `holdfast router adopt`, and confirm what it shows.',
  },
});
