/**
 * Replay: the log run through the machines again, on any machine, without any service. Imported by commands and
 * tests; uses actors and log, knows no plugin.
 */

export { type Moment, momentAt } from './at.ts';
export { alterEvent, type Change, type Inserted, parseInserted } from './changes.ts';
export { causesOf, type Link, sentenceOf } from './explain.ts';
export type { Difference, Untrusted } from './findings.ts';
export { type Candidate, candidatesOf } from './guards.ts';
export { type Divergence, decisionOf, type NotCompared, Replay, type ReplayReport } from './verify.ts';
export { verifyLog, verifySteps } from './verify-log.ts';
export { type Unanswered, type WhatIf, whatIfSteps } from './what-if.ts';
