import { type ErrorEntry, entry } from '../entry.ts';

/** Of alert rules and their delivery. */
export const alertingErrors = {
  HF_ALERTS_RECEIVER: entry(
    500,
    'The receiver {receiver} can not be posted to: {reason}.',
    'Give its address by {variable}, by {variable}_FILE (mode 0600), or by `urlFile` or `urlSecret` of the receiver in plugins.config.ts.',
  ),
  HF_ALERTS_UNKNOWN: entry(404, 'There is no {kind} {name}.', 'Name one that `holdfast alerts list` shows.'),
  HF_ALERTS_STATE: entry(
    409,
    'The alert {alert} is {state}, so it can not be acknowledged.',
    'Only one that fires can be acknowledged: `holdfast alerts list` shows how they are.',
  ),
  HF_ALERTS_UI: entry(
    502,
    'The alerts of the UI at {place} can not be made to agree: {reason}.',
    'Remedy `hyperdx` of alerts() in plugins.config.ts or the UI, and run `holdfast alerts bootstrap` again: what is done already stays.',
  ),
  HF_FRESHNESS_UNTOLD: entry(
    502,
    'What was found could not be told at {place}: {reason}.',
    'Fix the receiver, or name another by --url-file; `holdfast freshness --test` shows whether it takes what is posted.',
  ),
} as const satisfies Record<string, ErrorEntry>;
