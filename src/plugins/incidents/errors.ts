import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the `incidents` server: an agent reads them in the answer of a tool. */
export const IncidentsError = defineErrors({
  HF_INCIDENTS_PLACE: {
    status: 400,
    what: '{text} names neither a time nor a record.',
    remedy:
      'Give an ISO 8601 time (2026-01-31T03:05Z), a relative one (2h ago), now, or the number of a record.',
  },
  HF_INCIDENTS_CURSOR: {
    status: 400,
    what: 'The cursor is none that this tool gave for this question.',
    remedy: 'Leave it out to begin with the first page.',
  },
  HF_INCIDENTS_QUESTION: {
    status: 400,
    what: '{reason}.',
    remedy: 'Change the arguments as the description of the tool says.',
  },
  HF_INCIDENTS_DEADLINE: {
    status: 503,
    what: 'The answer took longer than {seconds} s.',
    remedy: 'Ask about a shorter time or fewer records.',
  },
  HF_INCIDENTS_CHECK: {
    status: 500,
    what: 'The check of the log did not end: {reason}.',
    remedy: 'Run `holdfast log verify`, which has no deadline.',
  },
});
