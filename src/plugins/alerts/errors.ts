import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of alert rules and their delivery. */
export const AlertsError = defineErrors({
  HF_ALERTS_RECEIVER: {
    status: 500,
    what: 'The receiver {receiver} cannot be posted to: {reason}.',
    remedy:
      'Give its address by {variable}, by {variable}_FILE (mode 0600), or by `urlFile` or `urlSecret` of the receiver in plugins.config.ts.',
  },
  HF_ALERTS_UNKNOWN: {
    status: 404,
    what: 'There is no {kind} {name}.',
    remedy: 'Name one that `holdfast alerts list` shows.',
  },
  HF_ALERTS_STATE: {
    status: 409,
    what: 'The alert {alert} is {state}, so it cannot be acknowledged.',
    remedy: 'Acknowledge an alert that fires; `holdfast alerts list` shows the state of each.',
  },
  HF_ALERTS_UNSEEN: {
    status: 503,
    what: 'A source of the rule could not be read: {reason}.',
    remedy: 'See `holdfast doctor`; until then the rule keeps its last verdict.',
  },
  HF_ALERTS_NOT_DELIVERED: {
    status: 502,
    what: 'The notice could not be delivered to {place}: {reason}.',
    remedy:
      'Fix the receiver, or name another by --url-file; `holdfast freshness --test` shows whether it accepts a post.',
  },
  HF_ALERTS_UI: {
    status: 502,
    what: 'The alerts of the UI at {place} cannot be updated: {reason}.',
    remedy:
      'Correct `hyperdx` of alerts() in plugins.config.ts or the UI, and run `holdfast alerts bootstrap` again. Alerts that are updated already stay so.',
  },
});
