import { HostError } from '../../core/host/errors/host-error.ts';
import type { TextPattern } from '../../core/host/history/select.ts';
import { textPattern } from '../../core/host/history/text-pattern.ts';
import { plainText } from '../../core/host/terminal.ts';

/**
 * Parses what `--grep` takes: a text, found in any case; or `/expression/`, which cannot hold up the command.
 *
 * @throws HF_CLI_USAGE it is too long, or an expression that cannot run in linear time
 */
export function parsePattern(source: string): TextPattern {
  return textPattern(
    source,
    (reason) =>
      new HostError('HF_CLI_USAGE', { reason: plainText(`--grep: ${reason}.`), command: 'log list' }),
  );
}
