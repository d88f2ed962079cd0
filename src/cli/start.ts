import module from 'node:module';
import { resolve } from 'node:path';
import v8 from 'node:v8';
import { endsWithin } from '../core/host/deadline.ts';
import { placeOf } from '../core/host/http/addresses.ts';
import type { Place } from '../core/host/http/contract.ts';
import type { CommandContext, CommandRun } from '../core/host/plugin/command.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import type { Runtime } from '../core/host/runtime/runtime.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';
import { collectGarbageOfStart } from '../core/kernel/worker.ts';
import { makeDataFolder } from './data-folder.ts';
import { FAILED, OK } from './failure.ts';

/** After a fault of ours a stop that hangs is cut off: what it would save is in the log already. */
const STOP_TIMEOUT_MS = 20_000;

/** How long the ready lines wait for the first records to be durable. */
const DURABLE_TIMEOUT_MS = 3_000;

/** Why a run ends: a signal, or a fault of ours. */
interface End {
  readonly reason: string;
  readonly fault?: unknown;
}

/** `holdfast start`: the one long-lived process (R29). It starts no other. */
export const start: CommandRun = async (_args, flags, context) => {
  const { file, plugins, lingerMs, signEvery, patienceMs, retention, witness, reserveBytes } =
    await context.config();
  const [{ createRuntime }, { createLogger }, { ConfigFile }, { CONFIG_FILE }] = await Promise.all([
    import('../core/host/runtime/runtime.ts'),
    import('../core/host/logging/logger.ts'),
    import('../core/host/config/config-file.ts'),
    import('../core/host/config/load.ts'),
  ]);
  const began = performance.now();
  const logger = createLogger();
  const { dataDir, signal } = context;
  makeDataFolder(dataDir);
  // A folder that was there already may be open to others: what is made in it is not, SQLite's files among them.
  process.umask(process.umask() | 0o077);
  if (flags.adopt !== undefined) {
    const { adoptHost } = await import('./adopt.ts');
    await adoptHost(flags, context);
  }
  const runtime = createRuntime({
    plugins,
    dataDir,
    logger,
    configFile: new ConfigFile(file),
    ...(lingerMs !== undefined && { lingerMs }),
    ...(signEvery !== undefined && { signEvery }),
    ...(patienceMs !== undefined && { patienceMs }),
    ...(retention && { retention }),
    ...(witness && { witness }),
    ...(reserveBytes !== undefined && { reserveBytes }),
  });
  const ended = endOf(signal);
  // The runtime's own timers keep no process alive, and a plugin need not listen.
  const alive = setInterval(() => {}, 2 ** 31 - 1);
  try {
    // A signal need not wait until everything has started.
    void ended.then(({ reason }) => runtime.stop(reason));
    await runtime.start();
    await firstRecordsDurable(runtime);
    // The launcher held the young generation small; under load a larger one is worth its memory (V8's default).
    v8.setFlagsFromString('--semi-space-growth-factor=2');
    const found = file === resolve(CONFIG_FILE);
    const where = `${found ? '' : ` --config ${quoted(file)}`}${folderOption(dataDir)}`;
    announce(runtime, performance.now() - began, context, await context.registrations(), where);
    // The next start need not compile what this one has, even if this one is killed.
    module.flushCompileCache();
    // A tenth of a second, at once after the start, when little waits.
    collectGarbageOfStart();
  } catch (error) {
    if (!isCoded(error, 'HF_PLUGIN_INTERRUPTED')) throw error;
  } finally {
    clearInterval(alive);
  }
  const { reason, fault } = await ended;
  if (fault !== undefined) {
    logger.fatal({ err: fault, reason }, 'process.fault');
    setTimeout(() => process.exit(FAILED), STOP_TIMEOUT_MS).unref();
  }
  const errors = await runtime.stop(reason);
  logger.info({ reason, errors: errors.map(({ code }) => code) }, 'process.stopped');
  return fault === undefined && errors.length === 0 ? OK : FAILED;
};

/**
 * Waits until what the start decided is on the disk: whoever sees the ready lines may kill the process, and the log must
 * hold this run. A disk that takes nothing is reported by the health page, so the wait is bounded.
 */
async function firstRecordsDurable({ services: { log } }: Runtime): Promise<void> {
  await endsWithin(DURABLE_TIMEOUT_MS, log.whenDurable(log.lastSeq()));
}

/** Resolves when the process should end, with the reason that the log records. */
function endOf(signal: AbortSignal): Promise<End> {
  const { promise, resolve: end } = Promise.withResolvers<End>();
  const stop = () => end({ reason: String(signal.reason) });
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (fault) => end({ reason: `${event}: ${messageOf(fault)}`, fault }));
  }
  return promise;
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

/** Prints the boot report, where to reach what has started, and what to try. */
function announce(
  runtime: Runtime,
  ms: number,
  { dataDir, json, terminal }: CommandContext,
  registrations: Registrations,
  where: string,
): void {
  const { surfaces } = runtime;
  const { out, paint } = terminal; // not `print`, which would end the process where nobody reads the ready lines
  if (json) {
    out(`${JSON.stringify({ ready: true, pid: process.pid, ms: Math.round(ms), dataDir, surfaces })}\n`);
    return;
  }
  const width = Math.max(8, ...Object.keys(surfaces).map((name) => name.length));
  const row = (name: string, text: string) => `  ${name.padEnd(width)}  ${text}`;
  const lines = [
    ...runtime.bootReport(),
    '',
    `${paint(['bold', 'green'], 'Holdfast is ready')} (pid ${process.pid}, after ${Math.round(ms)} ms)`,
    ...grouped(Object.keys(surfaces)).map((name) => row(name, surfaces[name]?.url ?? '')),
    row('data', dataDir),
    '',
    'Try next:',
    ...suggestions(surfaces, registrations, where).map((command) => `  ${command}`),
    '',
  ];
  out(`${lines.join('\n')}\n`);
}

/** Groups names by their first word: `otlpGrpc` follows `otlpHttp`, whatever started between them. */
function grouped(names: readonly string[]): string[] {
  const family = (name: string) => /^[a-z]*/.exec(name)?.[0];
  return Object.values(Object.groupBy(names, (name) => family(name) ?? name)).flatMap((group = []) => group);
}

/** Requests and commands for a newcomer: the paths that surfaces suggest, and the first command of each area. @param where options of each command */
function suggestions(
  running: Runtime['surfaces'],
  { surfaces, commands }: Registrations,
  where: string,
): string[] {
  const requests = surfaces.flatMap(({ options: { name, tryPath } }) => {
    const place = running[name];
    return place === undefined || tryPath === undefined ? [] : [curlOf(place, tryPath)];
  });
  const firsts = commands.filter(({ first }) => first).map(({ name }) => name);
  return [
    ...requests,
    `npx holdfast status${where}`,
    ...firsts.map((command) => `npx holdfast ${command}${where}`),
    `npx holdfast log tail${where}`,
  ];
}

/** The option with which commands in this working directory find the data folder. */
function folderOption(dataDir: string): string {
  return dataDir === resolve('.holdfast') ? '' : ` --data-dir ${quoted(dataDir)}`;
}

/** How a person calls a surface: on its socket and with its token, where it has them. */
function curlOf({ url, tokenFile }: Place, path: string): string {
  const token = tokenFile === undefined ? '' : ` -H "authorization: Bearer $(cat ${quoted(tokenFile)})"`;
  const { socketPath, root } = placeOf(url);
  const socket = socketPath === undefined ? '' : ` --unix-socket ${quoted(socketPath)}`;
  return `curl -s${token}${socket} ${root}${path}`;
}

/** Quoted so that a shell takes it for one word. */
function quoted(path: string): string {
  return /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
