/**
 * Replay: the log run through the machines again, on any machine, without any service. Imported by commands and
 * tests; uses actors and log, knows no plugin.
 */

export { type Divergence, decisionOf, Replay, type ReplayReport } from './verify.ts';
export { verifyLog, verifySteps } from './verify-log.ts';
