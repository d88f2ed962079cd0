import { existsSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { checkFolder } from '../core/host/integrity/check.ts';
import { compareWithStop } from '../core/host/integrity/compare.ts';
import { bounded, type DataCheckResult, isDamage, textOf } from '../core/host/integrity/findings.ts';
import { askIfRunning } from '../core/host/operations/control-client.ts';
import type { CommandContext, CommandRun } from '../core/host/plugin/command.ts';
import { progressOf } from '../core/host/progress.ts';
import { notedSettings } from '../core/host/retention/settings.ts';
import { jsonText } from '../core/host/terminal.ts';
import { witnessPath } from '../core/host/witness/settings.ts';
import { KernelError } from '../core/kernel/errors/kernel-error.ts';
import { lockDataDir } from '../core/kernel/log/lock.ts';
import { logFile } from '../core/kernel/log/schema.ts';
import { isReadable } from '../core/kernel/ownership.ts';
import { FAILED, OK } from './failure.ts';

/** The control path by which a running instance checks its data folder now. */
const CHECK_PATH = '/data/check';

/**
 * `holdfast data check`: reads everything in the data folder now (C9). A running instance does it itself, at low priority, and
 * records what it finds; of a stopped one nothing is changed.
 */
export const checkData: CommandRun = async (_args, _flags, context) => {
  const { dataDir, json, print, terminal } = context;
  if (!isReadable(logFile(dataDir), dataDir)) throw new KernelError('HF_LOG_MISSING', { dir: dataDir });
  const asked = await askIfRunning<DataCheckResult>(context, CHECK_PATH, {}, 'it checks no data folder');
  const result = asked ?? (await checkStopped(context));
  const damaged = result.findings.some(isDamage);
  if (json) {
    print(jsonText({ ok: !damaged, ...result }, 2));
    return damaged ? FAILED : OK;
  }
  const { files, records, archives, findings, more = 0 } = result;
  print(`${records} records, ${archives} archives and ${files} files were read.`);
  if (findings.length === 0) print(terminal.paint('green', 'Everything is as it was left.'));
  for (const finding of findings)
    print(terminal.paint(isDamage(finding) ? 'red' : 'yellow', `${textOf(finding)}.`));
  if (more > 0) print(`and ${more} more`);
  return damaged ? FAILED : OK;
};

/** Holds the folder meanwhile, so that no instance starts on what is being read. */
async function checkStopped(context: CommandContext): Promise<DataCheckResult> {
  const { dataDir, signal } = context;
  const began = performance.now();
  const unlock = lockDataDir(dataDir);
  try {
    const { found } = compareWithStop(dataDir);
    const witness = await witnessFile(context);
    const steps = checkFolder({
      dataDir,
      archives: notedSettings(dataDir).folder,
      overwritten: await overwrittenFiles(context),
      isTrial: true,
      ...(witness !== undefined && { witness }),
    });
    const onProgress = progressOf('Checking', context);
    for (;;) {
      const { done, value } = await steps.next();
      if (!done) {
        onProgress(0, value);
        await turn();
        signal.throwIfAborted();
        continue;
      }
      const { findings, more = 0, ...read } = value.result;
      const all = bounded([...found, ...findings]);
      const left = (all.more ?? 0) + more;
      const tookMs = Math.round(performance.now() - began);
      return { ...read, ...all, ...(left > 0 && { more: left }), at: Date.now(), tookMs };
    }
  } finally {
    unlock();
  }
}

async function overwrittenFiles({ registrations }: CommandContext): Promise<string[]> {
  try {
    return (await registrations()).overwrittenFiles.map(({ path }) => path);
  } catch {
    return []; // without a configuration more files are compared
  }
}

async function witnessFile({ config }: CommandContext): Promise<string | undefined> {
  try {
    const { witness } = await config();
    const place = witness && witnessPath(witness);
    return place !== undefined && existsSync(place) ? place : undefined;
  } catch {
    return undefined;
  }
}
