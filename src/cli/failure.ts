import { constants } from 'node:os';
import { maskText } from '../core/host/logging/mask-text.ts';
import { inertText, type Terminal, wrapped } from '../core/host/terminal.ts';
import { isCoded, toErrorBody } from '../core/kernel/errors/holdfast-error.ts';

/** The command succeeded. */
export const OK = 0;
/** A check or the work failed: a divergence, nothing running, a port that is taken. */
export const FAILED = 1;
/** The command line or the configuration has to be corrected first. */
export const USAGE = 2;

export const EXIT_CODES =
  'Exit codes: 0 success; 1 a check or the work failed; 2 wrong usage or configuration;\n  130 interrupted by Ctrl-C (143 by SIGTERM).';

const TO_CORRECT =
  /^HF_(CLI_(USAGE|COMMAND|PLUGIN|DATA_DIR|TERMINAL)|CONFIG_|PLUGIN_(MISSING|CYCLE|CONFLICT|CONTRACT)|EFFECT_UNHANDLED|ROUTE_TARGET|GATEWAY_KEY_(REQUEST|UNKNOWN|AMBIGUOUS)|LOG_(MISSING|RANGE|EXISTS)|PORTABLE_(EMPTY|FILTERED|FOREIGN|FORMAT)|REPLAY_(MACHINES|CHANGE))/;

/** The exit code that an error ends a command with. */
export function exitCodeOf(error: unknown): number {
  return isCoded(error) && TO_CORRECT.test(error.code) ? USAGE : FAILED;
}

/**
 * Prints an error on standard error: its code, what happened and what fixes it, each on a line of its own that a
 * terminal's width breaks; with `json` one JSON object. An error without a code is a fault of ours, so its stack is shown.
 */
export function printError(error: unknown, json: boolean, terminal: Terminal): void {
  const { code, what, remedy } = toErrorBody(error);
  if (json) {
    const masked = { code, what: maskText(what), remedy: maskText(remedy) };
    terminal.err(`${inertText(JSON.stringify({ error: masked }))}\n`);
    return;
  }
  // Output that is not a terminal gets whole lines, so that it can be searched.
  const indented = (text: string) =>
    (terminal.interactive ? wrapped(text, terminal.columns - 2) : [text]).map((line) => `  ${line}`);
  const lines = [terminal.paintError(['bold', 'red'], code), ...indented(what), ...indented(remedy)];
  if (!isCoded(error)) lines.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  terminal.err(`${inertText(maskText(lines.join('\n')))}\n`);
}

/** Whether an error only says that the command was asked to end. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted || isCoded(error)) return false;
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError');
}

/**
 * The exit code of a command that a signal ended before its work was done: 128 and the signal's number, as shells have
 * it; 130 for Ctrl-C.
 */
export function exitCodeOfInterruption({ reason }: AbortSignal): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return 128 + (numbers[String(reason)] ?? constants.signals.SIGINT);
}
