import { createInterface } from 'node:readline/promises';
import { ADOPTION_PATH, type AdoptionView } from '../../core/contracts/reconciler.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { counted, plainText } from '../../core/host/terminal.ts';
import { NO_RECONCILER } from './unit.ts';

/** What the router lacks or has, as the command shows it. */
const FOUND: Readonly<Record<string, string>> = {
  'not adopted': 'would be added',
  whole: 'is there',
  absent: 'the config has no such interface or section',
  unread: 'has not been read yet',
};

/** `holdfast router adopt`: confirms the legs that may be written to a router elsewhere (R24). */
export const adoptCommand: CommandDefinition = {
  name: 'router adopt',
  summary: 'Shows what the reconciler would post to the router elsewhere, and lets it after a confirmation',
  example: 'holdfast router adopt --yes',
  flags: [{ flags: '--yes', summary: 'confirm without a question, as a script does' }],
  async run(_args, { yes }, command) {
    const { json, print } = command;
    const ask = <T extends object>(path: string, body: object) =>
      askInstance<T>(command, path, body, NO_RECONCILER);
    const before = await ask<AdoptionView>(ADOPTION_PATH, {});
    if (before.state !== 'observing') {
      print(json ? JSON.stringify(before) : stateText(before));
      return 0;
    }
    if (!json) for (const line of lines(before)) print(line);
    if (yes !== true && !(await confirmed(command, `Let it write to ${before.place}? [y/N] `))) {
      print(json ? JSON.stringify(before) : 'Nothing was adopted, and nothing is written.');
      return 1;
    }
    const body = { by: operatorName(), list: before.list };
    const after = await ask<AdoptionView>(`${ADOPTION_PATH}/adopt`, body);
    print(json ? JSON.stringify(after) : stateText(after));
    return 0;
  },
};

function lines({ place, legs }: AdoptionView): string[] {
  const rows = legs.map(({ intf, label, address, state }) => {
    const found = FOUND[state] ?? state;
    return `  ${plainText(intf).padEnd(10)} ${plainText(label).padEnd(14)} ${plainText(address).padEnd(28)} ${found}`;
  });
  return [`The router at ${place} would get these addresses, and keep them:`, ...rows];
}

/** Whether the legs may be written, in a sentence. */
function stateText({ state, place, by, at, legs }: AdoptionView): string {
  if (state === 'not needed') return 'The router is part of this instance: its legs need no adoption.';
  const who = by === undefined ? '' : ` by ${by}${at === undefined ? '' : ` at ${at}`}`;
  return `The ${counted(legs.length, 'leg')} of ${place} ${legs.length === 1 ? 'is' : 'are'} adopted${who}.`;
}

/** @throws HF_CLI_USAGE nobody can answer */
async function confirmed({ signal, json }: CommandContext, question: string): Promise<boolean> {
  if (json || !process.stdin.isTTY) {
    const reason = 'nobody can answer here: give --yes to confirm the legs';
    throw new HostError('HF_CLI_USAGE', { reason, command: 'router adopt' });
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // A terminal whose keys are read one by one makes no signal of Ctrl-C.
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return /^y(es)?$/i.test((await lines.question(question, { signal })).trim());
  } catch (error) {
    signal.throwIfAborted();
    // Ctrl-D in place of an answer.
    if (error instanceof Error && error.name === 'AbortError') return false;
    throw error;
  } finally {
    lines.close();
  }
}
