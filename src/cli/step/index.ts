/**
 * The interactive viewer of a log, `holdfast replay step`: `viewer` is what keys do (pure), `log` what it asks of the
 * log, `page` and `frame` what is seen (text), `screen` the terminal, and `run` the loop that joins them. Loaded by its
 * command alone.
 */

export { type StepOptions, stepThrough } from './run.ts';
export { Screen } from './screen.ts';
