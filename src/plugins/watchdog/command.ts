import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { askIfRunning } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { ConfiguredPlugin, PluginDefinition } from '../../core/host/plugin/definition.ts';
import { CoreError } from '../../core/kernel/errors/core-error.ts';
import { DEADLINE_MS, KILLED_EXIT, type RunReport } from '../../machines/watchdog/run.ts';
import { watchdogDue, watchdogReported } from './actor.ts';

/** The path that the command posts to. */
export const RUN_PATH = '/watchdog/run';

/** `holdfast watchdog run`: one run, by the running instance when there is one. */
export const runCommand: CommandDefinition = {
  name: 'watchdog run',
  summary:
    'Checks the stack once, and sends the heartbeat if it is healthy; the heartbeat is the verdict, not the exit code',
  example: 'holdfast watchdog run',
  flags: [{ flags: '--deadline <seconds>', summary: 'a run that takes longer is ended', default: '120' }],
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
  throw new CoreError('HF_CLI_USAGE', {
    reason: `--deadline must be 1 to ${DEADLINE_MS / 1_000} seconds, not ${String(text)}.`,
    command: 'watchdog run',
  });
}

/** The deadline of the job applies here too, so that a run that is ended by it can still report that. */
async function within(deadlineMs: number, command: CommandContext): Promise<RunReport> {
  const startedAt = Date.now();
  const deadline = AbortSignal.timeout(deadlineMs);
  const signal = AbortSignal.any([command.signal, deadline]);
  try {
    return await runOnce({ ...command, signal });
  } catch (error) {
    if (!deadline.aborted) throw error;
    const line = `DEADLINE EXCEEDED: the run did not end within ${deadlineMs / 1_000} s`;
    return { outcome: 'killed', lines: [line], exitCode: KILLED_EXIT, startedAt };
  }
}

async function runOnce(command: CommandContext): Promise<RunReport> {
  return (await askIfRunning<RunReport>(command, RUN_PATH, {}, 'it runs no watchdog')) ?? runAlone(command);
}

const NEEDED: readonly unknown[] = [ColumnarDatabaseToken, SecretsStoreToken, UptimeMonitorToken];

/**
 * One run without an instance, as in a CronJob: a runtime of the few plugins that a run needs, for as long as it takes.
 * The run is recorded like any other. An embedded database belongs to the instance and is not opened.
 */
async function runAlone({ config, dataDir, signal, note }: CommandContext): Promise<RunReport> {
  const { createRuntime } = await import('../../core/host/runtime/runtime.ts');
  const { createLogger } = await import('../../core/host/logging/logger.ts');
  const { plugins } = await config();
  const runtime = createRuntime({
    plugins: plugins.filter(isNeeded),
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  try {
    await runtime.start();
    const { bus, clock } = runtime.services;
    const began = clock.now();
    return await new Promise<RunReport>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      bus.subscribe(watchdogReported, 'watchdog-run', ({ payload }) => {
        if (payload.startedAt >= began) return resolve(payload);
        // A run before this one was interrupted; its report comes only now.
        const at = new Date(payload.startedAt).toISOString();
        note(`The run before, which began at ${at}, sent no heartbeat. ${payload.lines.join(' ')}`);
      });
      bus.publish(watchdogDue, {});
    });
  } finally {
    await runtime.stop('the run is over');
  }
}

function isNeeded({ definition, options }: ConfiguredPlugin): boolean {
  const { name, provides = [] } = definition as PluginDefinition;
  if (provides.some((token) => token === ColumnarDatabaseToken)) return options.url !== undefined;
  return name === 'watchdog' || provides.some((token) => NEEDED.includes(token));
}
