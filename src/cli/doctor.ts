import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { clockCheck } from '../core/host/clock/records.ts';
import { withDeadline } from '../core/host/deadline.ts';
import { HostError } from '../core/host/errors/host-error.ts';
import { damageCheck, witnessCheck } from '../core/host/integrity/doctor.ts';
import { maskText } from '../core/host/logging/mask-text.ts';
import type { CommandContext, CommandRun, Terminal } from '../core/host/plugin/command.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../core/host/plugin/diagnosis.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import { sizeText } from '../core/host/size.ts';
import { plainText, wrapped } from '../core/host/terminal.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';
import { whoCouldReplace } from '../core/kernel/ownership.ts';
import { FAILED, OK } from './failure.ts';
import { inspectInstance } from './instance.ts';
import { certificateCheck } from './security/certificates.ts';
import { fileChecks } from './security/files.ts';
import { plaintextCheck } from './security/plaintext.ts';
import { surfaceChecks } from './security/surfaces.ts';
import { reportsOf } from './status.ts';

/** `holdfast doctor`: makes the checks of the machine and of every plugin from outside, and says what to do (R30). */
export const diagnose: CommandRun = async ([area], _flags, context) => {
  const configuration = configurationCheck(context);
  const plugins = await registered(context);
  const all = [
    ...hostChecks,
    configuration,
    ...(plugins ? [...securityChecks(plugins, context.config), ...plugins.checks] : []),
  ];
  let checks = area === undefined ? all : all.filter(({ name }) => areaOf(name) === area);
  // Without a configuration no check of a plugin is known, whichever area was asked for.
  if (plugins === undefined && !checks.includes(configuration)) checks = [configuration, ...checks];
  if (checks.length === 0) {
    const areas = [...new Set(all.map(({ name }) => areaOf(name)))].join(', ');
    const reason = `There are no checks named ${area}; the areas are ${areas}.`;
    throw new HostError('HF_CLI_USAGE', { reason, command: 'doctor' });
  }
  const { json, print, terminal } = context;
  const findings = await examine(checks, await checkContext(context));
  const ok = findings.every(({ state }) => state !== 'fail');
  if (json) print(JSON.stringify({ ok, checks: findings }, null, 2));
  else for (const line of findingLines(findings, terminal)) print(line);
  return ok ? OK : FAILED;
};

function areaOf(name: string): string {
  return name.split('.')[0] ?? name;
}

/** A configuration that cannot be loaded is a finding; the checks of the machine are made all the same. */
function configurationCheck({ registrations }: CommandContext): CheckDefinition {
  return {
    name: 'host.config',
    async run() {
      const { plugins } = await registrations();
      const names = plugins.map(({ name }) => name).join(', ');
      return { state: 'ok', lookedAt: 'plugins.config.ts', found: `it loads: ${names}` };
    },
  };
}

/** What `holdfast doctor security` makes: what is open to whom. */
const securityChecks = (
  registrations: Registrations,
  config: CommandContext['config'],
): CheckDefinition[] => [
  ...surfaceChecks(registrations),
  ...fileChecks(registrations),
  certificateCheck(registrations),
  plaintextCheck(config),
];

async function registered(context: CommandContext): Promise<Registrations | undefined> {
  try {
    return await context.registrations();
  } catch {
    return undefined; // the check of the configuration says why
  }
}

async function checkContext(context: CommandContext): Promise<CheckContext> {
  const { dataDir, signal } = context;
  const { running, surfaces, facts } = await inspectInstance(dataDir, {
    now: Date.now(),
    signal,
    reports: reportsOf(context),
  });
  return {
    dataDir,
    signal,
    ...(facts && { facts }),
    ...(running && facts && { running: { surfaces: surfaces ?? {}, facts } }),
  };
}

/** A check with what it found. */
export interface Finding extends CheckResult {
  readonly name: string;
}

/** How long one check may take, milliseconds. */
const CHECK_TIMEOUT_MS = 20_000;

class TooLate extends Error {}

/** Makes all checks at once and gives what they found in their order. Never throws for what a check does. */
export function examine(
  checks: readonly CheckDefinition[],
  context: CheckContext,
  timeoutMs = CHECK_TIMEOUT_MS,
): Promise<Finding[]> {
  return Promise.all(checks.map((check) => examineOne(check, context, timeoutMs)));
}

async function examineOne(
  { name, run }: CheckDefinition,
  context: CheckContext,
  timeoutMs: number,
): Promise<Finding> {
  try {
    const deadline = { ms: timeoutMs, late: () => new TooLate(), signal: context.signal };
    const check = async (signal: AbortSignal) => run({ ...context, signal });
    const { state, lookedAt, found, remedy } = await withDeadline(deadline, check);
    return {
      name,
      state,
      lookedAt: maskText(lookedAt),
      found: maskText(found),
      ...(remedy !== undefined && { remedy: maskText(remedy) }),
    };
  } catch (error) {
    context.signal.throwIfAborted();
    return { name, state: 'fail', lookedAt: name, ...reasonOf(error, timeoutMs) };
  }
}

function reasonOf(error: unknown, timeoutMs: number): Pick<Finding, 'found' | 'remedy'> {
  if (isCoded(error)) return { found: maskText(error.what), remedy: maskText(error.remedy) };
  if (error instanceof TooLate) {
    const found = `no result within ${timeoutMs / 1_000} s`;
    return { found, remedy: 'Check that the system it asks is reachable, and try again.' };
  }
  const found = maskText(error instanceof Error ? error.message : String(error));
  return { found, remedy: 'The check itself is faulty: please report it.' };
}

/** The first release with type stripping and SQLite, both without flags or warnings. */
const NODE = { major: 24, minor: 12 };
/** A full log freezes every decision; below these it is time to act. */
const DISK_FAIL_BYTES = 32 * 1024 * 1024;
const DISK_WARN_BYTES = 512 * 1024 * 1024;

/** What Holdfast itself needs of the machine, whichever plugins run. */
const hostChecks: readonly CheckDefinition[] = [
  { name: 'host.node', run: () => nodeCheck(process.versions.node) },
  { name: 'host.data', run: ({ dataDir }) => dataCheck(dataDir) },
  { name: 'host.disk', run: ({ dataDir }) => diskCheck(dataDir) },
  { name: 'host.clock', run: clockCheck },
  { name: 'host.damage', run: damageCheck },
  { name: 'host.witness', run: witnessCheck },
];

export function nodeCheck(version: string): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const lookedAt = 'the version of Node';
  const isEnough = major > NODE.major || (major === NODE.major && minor >= NODE.minor);
  if (isEnough) return { state: 'ok', lookedAt, found: `Node ${version}` };
  const found = `Node ${version}, and ${NODE.major}.${NODE.minor} is needed`;
  return { state: 'fail', lookedAt, found, remedy: 'Install Node 24, or run `npm ci` in the checkout.' };
}

/** The log and the generated keys lie there: nobody else may read them. */
function dataCheck(dataDir: string): CheckResult {
  const lookedAt = dataDir;
  if (!existsSync(dataDir)) {
    const found = 'there is none yet: the first start creates it';
    return {
      state: 'unknown',
      lookedAt,
      found,
      remedy: 'Start it with `holdfast start`, or name the folder by --data-dir.',
    };
  }
  const { mode, uid } = statSync(dataDir);
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const found = `it belongs to user ${uid} with mode ${octal}, and this user (${process.getuid?.()}) cannot write it`;
    return { state: 'fail', lookedAt, found, remedy: `Run as its owner, or change the owner with chown.` };
  }
  const unsafe = whoCouldReplace(dataDir);
  if (unsafe !== undefined) {
    const remedy = 'Run chmod go-w, or chown, on what it names: a start refuses the folder (HF_LOG_OWNER).';
    return { state: 'fail', lookedAt, found: unsafe, remedy };
  }
  if ((mode & 0o077) !== 0) {
    const remedy = `chmod 700 ${dataDir}`;
    return { state: 'warn', lookedAt, found: `other users can read it (mode ${octal})`, remedy };
  }
  return { state: 'ok', lookedAt, found: `mode ${octal}, writable` };
}

function diskCheck(dataDir: string): CheckResult {
  let folder = dataDir;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  return judgeDisk(bavail * bsize, folder);
}

/** @param free bytes that this user may still write */
export function judgeDisk(free: number, folder: string): CheckResult {
  const lookedAt = `the disk under ${folder}`;
  const found = `${sizeText(free)} are free`;
  if (free >= DISK_WARN_BYTES) return { state: 'ok', lookedAt, found };
  const remedy = 'Free some space: when the log cannot be written, no decision is made.';
  return { state: free < DISK_FAIL_BYTES ? 'fail' : 'warn', lookedAt, found, remedy };
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red', unknown: 'yellow' } as const;

const LABEL = 11;

/** Findings for a person: what is well in one line, the rest with the place and what to do. */
export function findingLines(findings: readonly Finding[], { paint, columns }: Terminal): string[] {
  const width = Math.max(0, ...findings.map(({ name }) => name.length));
  const stateWidth = Math.max(4, ...findings.map(({ state }) => state.length));
  const lines = findings.flatMap(({ name, state, lookedAt, found, remedy }) => {
    const below = (indent: number, head: string, text: string) => {
      const [first = '', ...rest] = wrapped(plainText(text), columns - indent);
      return [head + first, ...rest.map((line) => ' '.repeat(indent) + line)];
    };
    const row = (label: string, text: string) =>
      below(
        stateWidth + 2 + LABEL,
        `${' '.repeat(stateWidth + 2)}${paint('dim', label.padEnd(LABEL))}`,
        text,
      );
    const head = `${paint(['bold', COLOURS[state]], state.padEnd(stateWidth))}  ${name.padEnd(width)}  `;
    const lines = below(4 + stateWidth + width, head, found);
    if (state === 'ok') return lines;
    return [...lines, ...row('looked at', lookedAt), ...(remedy === undefined ? [] : row('do', remedy))];
  });
  return [...lines, '', ...wrapped(summary(findings), columns)];
}

function summary(findings: readonly Finding[]): string {
  const count = (state: CheckResult['state']) => findings.filter((finding) => finding.state === state).length;
  const unknown = count('unknown') > 0 ? `, ${count('unknown')} unknown` : '';
  const counts = `${findings.length} checks: ${count('ok')} ok, ${count('warn')} ${count('warn') === 1 ? 'warning' : 'warnings'}${unknown}, ${count('fail')} to fix`;
  const toFix = findings.filter(({ state }) => state === 'fail').map(({ name }) => name);
  // A long list has scrolled away when its end is read.
  return toFix.length === 0 ? counts : `${counts}: ${toFix.join(', ')}`;
}
