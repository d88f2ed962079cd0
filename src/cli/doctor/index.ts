/**
 * `holdfast doctor`: core's own checks of the machine (`host-checks.ts`), those that plugins declare with
 * `ctx.check`, how they are made (`examine.ts`) and shown (`lines.ts`). It starts nothing and changes nothing.
 */
export { examine, type Finding } from './examine.ts';
export { hostChecks } from './host-checks.ts';
export { findingLines } from './lines.ts';
