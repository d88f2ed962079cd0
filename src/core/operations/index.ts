/**
 * Operations: what a command asks of the instance that runs on the data folder, through its control socket. A plugin
 * serves one with `serveOperation` and its command asks with `askInstance`: the question is checked, and a refusal
 * arrives as the coded error that it was thrown as. Imports errors, http, log and json.
 */
export { type Asking, askIfRunning, askInstance, operatorName } from './ask.ts';
export { type ControlAnswer, postControl } from './post-control.ts';
export { type Operation, serveOperation } from './serve.ts';
