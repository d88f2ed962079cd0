import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { type AnyStateMachine, StateMachine } from 'xstate';

export const folder = new URL('../../src/machines/', import.meta.url);

/** Every source below `src/machines`, by its path there. */
export const machineFiles: readonly string[] = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .sort();

export const sourceOf = (file: string): string => readFileSync(new URL(file, folder), 'utf8');

/** The sources that a machine's file imports from this folder, itself included. */
export function sourcesOf(file: string, seen = new Set<string>()): string {
  if (seen.has(file)) return '';
  seen.add(file);
  const source = sourceOf(file);
  const imports = [...source.matchAll(/from '(\.[^']+)'/g)].map(([, name = '']) =>
    posix.join(posix.dirname(file), name),
  );
  return [source, ...imports.map((name) => sourcesOf(name, seen))].join('\n');
}

const found: (readonly [file: string, machines: readonly AnyStateMachine[]])[] = [];
for (const file of machineFiles) {
  const exported: Record<string, unknown> = await import(new URL(file, folder).href);
  const machines = Object.values(exported).filter((value) => value instanceof StateMachine);
  if (machines.length > 0) found.push([file, machines as unknown as AnyStateMachine[]]);
}

/** The files that define machines, each with those it exports. */
export const machinesByFile: ReadonlyMap<string, readonly AnyStateMachine[]> = new Map(found);

/** Every machine, by its id. */
export const allMachines: Readonly<Record<string, AnyStateMachine>> = Object.fromEntries(
  found.flatMap(([, machines]) => machines.map((machine) => [machine.id, machine])),
);
