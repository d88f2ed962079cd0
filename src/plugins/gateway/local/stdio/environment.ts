import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join, resolve } from 'node:path';
import type { McpCommand } from '../../../../core/contracts/mcp-routes.ts';

/** A command with the defaults of its settings. */
export type WholeCommand = Required<Omit<McpCommand, 'cwd' | 'maxProcessesPerKey'>> & {
  readonly cwd?: string | undefined;
  readonly maxProcessesPerKey?: number | undefined;
};

/** Reads a secret by its place, `<path>#<property>`. @throws there is none */
export type ReadSecret = (reference: string) => Promise<string>;

/** Why a server can not take a request now, in the protocol's words. */
export class Unavailable extends Error {
  /** When to come back, milliseconds. */
  readonly retryAfterMs: number;
  /** 429 where it is the caller who uses too much. */
  readonly status: 429 | 503;

  /** @param reason follows `The server` in a sentence */
  constructor(
    reason: string,
    retryAfterMs: number = 60_000,
    { status = 503, ...options }: ErrorOptions & { readonly status?: 429 | 503 } = {},
  ) {
    super(reason, options);
    this.retryAfterMs = retryAfterMs;
    this.status = status;
  }
}

/** What a program is started with. */
export interface Invocation {
  /** An absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The values in it that are secret. */
  readonly secrets: readonly string[];
}

/** The only variables of ours that a program gets: everything else may hold a secret. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'TZ'] as const;

/**
 * Gathers what a command needs to be started; secrets are read anew for each start, so that a rotated one counts from the
 * next start on.
 *
 * @param folder the working folder unless the command names one; a relative one is taken from it
 * @throws Unavailable the program, its folder or a secret is not there; the reason holds neither a path nor a value
 */
export async function invocationOf(
  command: WholeCommand,
  folder: string,
  readSecret: ReadSecret,
): Promise<Invocation> {
  const cwd = resolve(folder, command.cwd ?? '.');
  if (!isFolder(cwd)) throw new Unavailable('can not be started: its working folder does not exist');
  const env: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  Object.assign(env, command.env);
  const secrets: string[] = [];
  for (const [name, reference] of Object.entries(command.secrets)) {
    try {
      const value = await readSecret(reference);
      secrets.push(value);
      env[name] = value;
    } catch (error) {
      throw new Unavailable(`can not be started: its secret for ${name} can not be read`, undefined, {
        cause: error,
      });
    }
  }
  const program = programIn(command.run, env.PATH ?? '', cwd);
  if (program === undefined) {
    throw new Unavailable(
      `can not be started: its program ${basename(command.run)} is not there, or must not be executed`,
    );
  }
  return { program, args: command.args, cwd, env, secrets };
}

/** @returns the file of a program by its path or in PATH; undefined when there is none that may be executed */
function programIn(run: string, path: string, cwd: string): string | undefined {
  const files = run.includes('/')
    ? [resolve(cwd, run)]
    : path
        .split(delimiter)
        .filter(isAbsolute)
        .map((one) => join(one, run));
  return files.find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
