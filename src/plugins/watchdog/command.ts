import { askIfRunning } from '../../core/host/operations/ask.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { DEADLINE_MS, KILLED_EXIT, type RunReport } from '../../machines/watchdog/run-shapes.ts';
import { runAlone } from './run-alone.ts';

/** What the command posts to. */
export const RUN_PATH = '/watchdog/run';

/** `holdfast watchdog run`: one look, by the running instance where there is one. */
export const watchdogRun: CommandDefinition = {
  name: 'watchdog run',
  summary:
    'Looks at the stack once, and sends the heartbeat if it is well. The heartbeat is the verdict, not the exit code',
  example: 'holdfast watchdog run',
  flags: [{ flags: '--deadline <seconds>', summary: 'a run that takes longer is given up', default: '120' }],
  async run(_args, flags, command) {
    const { json, print } = command;
    const report = await within(deadlineOf(flags.deadline), command);
    if (json)
      print(JSON.stringify({ ...report, heartbeat: report.outcome === 'delivered' ? 'sent' : 'not sent' }));
    else for (const line of report.lines) print(line);
    return report.exitCode;
  },
};

/** @returns milliseconds, the job's own at most */
function deadlineOf(text: unknown): number {
  const seconds = Number(text);
  if (/^\d{1,3}$/.test(String(text)) && seconds >= 1 && seconds * 1_000 <= DEADLINE_MS)
    return seconds * 1_000;
  throw new HoldfastError('HF_CLI_USAGE', {
    reason: `--deadline must be 1 to ${DEADLINE_MS / 1_000} seconds, not ${String(text)}.`,
    command: 'watchdog run',
  });
}

/** The job's deadline is ours too, so that what is killed for it can still say so. */
async function within(deadlineMs: number, command: CommandContext): Promise<RunReport> {
  const startedAt = Date.now();
  const deadline = AbortSignal.timeout(deadlineMs);
  const signal = AbortSignal.any([command.signal, deadline]);
  try {
    return await look({ ...command, signal });
  } catch (error) {
    if (!deadline.aborted) throw error;
    const line = `DEADLINE EXCEEDED: the run did not end within ${deadlineMs / 1_000} s`;
    return { outcome: 'killed', lines: [line], exitCode: KILLED_EXIT, startedAt };
  }
}

async function look(command: CommandContext): Promise<RunReport> {
  return (await askIfRunning<RunReport>(command, RUN_PATH, {}, 'it runs no watchdog')) ?? runAlone(command);
}
