/**
 * Retention (C10): a whole prefix of the log goes into the portable form, and then out of the database. What stays is
 * replayed from the states that were saved where it begins. Knows the log and how states are folded; used by the
 * runtime (by itself, and through the control socket) and by `log prune`.
 */
export { AutomaticRetention, type RetentionSettings } from './automatic.ts';
export { archiveFolder, parseAge, parseSize } from './limits.ts';
export { pruneStopped } from './offline.ts';
export { pruneRunning } from './online.ts';
export { type PrunePlan, type PruneRequest, planPrune } from './plan.ts';
