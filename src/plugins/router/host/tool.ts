import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { RouterError } from '../errors.ts';

export interface ToolCall {
  readonly program: string;
  readonly args: readonly string[];
  /** A namespace by its name; this process's own without one. */
  readonly namespace?: string | undefined;
  readonly input?: string;
  readonly signal?: AbortSignal | undefined;
}

const DEADLINE_MS = 10_000;
/** `nft --json list sets` of a thousand networks takes a tenth of it. */
const MOST_OUTPUT = 16 * 1024 * 1024;

/**
 * Runs a program of the system to its end, without a shell.
 *
 * @returns what it printed
 * @throws HF_ROUTER_TOOL it does not exist, refused in its own words, or took longer than 10 s
 */
export async function runTool(call: ToolCall): Promise<string> {
  const { program, input, signal } = call;
  const timeout = AbortSignal.timeout(DEADLINE_MS);
  const cut = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  const refuse = (reason: string) => new RouterError('HF_ROUTER_TOOL', { program, reason });
  if (pathOf(program) === undefined) throw refuse('it is not installed');
  const [command, ...args] = commandOf(call);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'pipe', signal: cut, killSignal: 'SIGKILL' });
    let [output, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > MOST_OUTPUT) child.kill('SIGKILL');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(0, 2_000);
    });
    child.stdin.on('error', () => {}); // it ended without reading, and says why
    child.stdin.end(input ?? '');
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (cut.aborted) reject(refuse(timeout.aborted ? 'it took longer than 10 s' : 'it was interrupted'));
      else reject(refuse(error.code === 'ENOENT' ? 'it is not installed' : error.message));
    });
    child.on('close', (code, killed) => {
      if (code === 0) resolve(output);
      else reject(refuse(firstLine(errors) || `it ended with ${killed ?? code}`));
    });
  });
}

/** The command line that starts a program inside a namespace; `ip` becomes the program, so that it has the same pid. */
export function commandOf({ program, args, namespace }: ToolCall): [string, ...string[]] {
  const file = pathOf(program) ?? program;
  return namespace === undefined ? [file, ...args] : ['ip', 'netns', 'exec', namespace, file, ...args];
}

/** Where the system keeps its tools. `nft` is also the name of a package of npm, whose scripts put it on the PATH. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin', '/usr/local/sbin', '/usr/bin', '/bin'];

/** @returns the file of a program: that of the system before any other on the PATH; undefined when there is none */
export function pathOf(program: string): string | undefined {
  const folders = [...SYSTEM_FOLDERS, ...(process.env.PATH ?? '').split(delimiter)];
  return folders
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, program))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 300);
}
