import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { askIfRunning } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { ConfiguredPlugin, PluginDefinition } from '../../core/host/plugin/definition.ts';
import { DEADLINE_MS, deadlineLine, KILLED_EXIT, type RunReport } from '../../machines/watchdog/run.ts';
import { watchdogReported, watchdogRequested } from './actor.ts';

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
  throw new HostError('HF_CLI_USAGE', {
    reason: `--deadline must be 1 to ${DEADLINE_MS / 1_000} seconds, not ${String(text)}.`,
    command: 'watchdog run',
  });
}

/** How long after the deadline the report of the run may come, milliseconds. */
const REPORT_MS = 2_000;

/**
 * The run ends itself at its deadline and reports that. What this adds is the case in which no report comes at all, for
 * example because the instance is busy with a run of a later deadline.
 */
async function within(deadlineMs: number, command: CommandContext): Promise<RunReport> {
  const startedAt = Date.now();
  const ask = (signal: AbortSignal) =>
    askIfRunning<RunReport>({ ...command, signal }, RUN_PATH, { deadlineMs }, 'it runs no watchdog');
  return (
    (await reported(deadlineMs, deadlineMs, startedAt, command.signal, ask)) ??
    runAlone(command, deadlineMs, startedAt)
  );
}

/**
 * Waits for the report of a run.
 *
 * @param deadlineMs the deadline that was given for the run, milliseconds
 * @param remainingMs what is left of it
 */
async function reported<T>(
  deadlineMs: number,
  remainingMs: number,
  startedAt: number,
  interrupted: AbortSignal,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | RunReport> {
  const deadline = AbortSignal.timeout(remainingMs + REPORT_MS);
  try {
    return await wait(AbortSignal.any([interrupted, deadline]));
  } catch (error) {
    if (!deadline.aborted) throw error;
    const line = `${deadlineLine(deadlineMs)}; how it ends is not known here, see the event log`;
    return { outcome: 'killed', lines: [line], exitCode: KILLED_EXIT, startedAt };
  }
}

const NEEDED: readonly unknown[] = [ColumnarDatabaseToken, SecretsStoreToken, UptimeMonitorToken];

/**
 * One run without an instance, as in a CronJob: a runtime of the few plugins that a run needs, for as long as it takes.
 * The run is recorded like any other. An embedded database belongs to the instance and is not opened.
 */
async function runAlone(
  { config, dataDir, signal, note }: CommandContext,
  deadlineMs: number,
  startedAt: number,
): Promise<RunReport> {
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
    const remainingMs = Math.max(0, startedAt + deadlineMs - clock.now());
    const report = (until: AbortSignal) =>
      new Promise<RunReport>((resolve, reject) => {
        until.addEventListener('abort', () => reject(until.reason), { once: true });
        bus.subscribe(watchdogReported, 'watchdog-run', ({ payload }) => {
          if (payload.startedAt >= startedAt) return resolve(payload);
          // A run before this one was interrupted; its report comes only now.
          const at = new Date(payload.startedAt).toISOString();
          note(`The run before, which began at ${at}, sent no heartbeat. ${payload.lines.join(' ')}`);
        });
        bus.publish(watchdogRequested, { deadlineMs, remainingMs });
      });
    signal.throwIfAborted();
    return await reported(deadlineMs, remainingMs, startedAt, signal, report);
  } finally {
    await runtime.stop('the run is over');
  }
}

function isNeeded({ definition, options }: ConfiguredPlugin): boolean {
  const { name, provides = [] } = definition as PluginDefinition;
  if (provides.some((token) => token === ColumnarDatabaseToken)) return options.url !== undefined;
  return name === 'watchdog' || provides.some((token) => NEEDED.includes(token));
}
