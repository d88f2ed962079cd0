import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { isObject } from '../../../core/kernel/json.ts';
import type { Drawing } from './drawing.ts';
import type { MachineGraph } from './graph.ts';

/** Where the build leaves the drawings, from source and from the package. */
const DRAWINGS = fileURLToPath(new URL('../../../../dist/console/machines/', import.meta.url));

/** A drawing made at build time, and of which graph: another one's is not shown. */
export interface MachineDrawing {
  readonly of: string;
  readonly drawing: Drawing;
}

/** Tells graphs apart. */
export function graphDigest(graph: MachineGraph): string {
  return hash('sha256', JSON.stringify(graph), 'hex');
}

/**
 * The drawing that the build made of a type of actors, if it is of this very machine.
 *
 * @returns undefined for a plugin of somebody's own, and in a checkout whose pages are not built
 */
export async function builtDrawing(type: string, graph: MachineGraph): Promise<unknown> {
  try {
    const made: unknown = JSON.parse(await readFile(`${DRAWINGS}${type}.json`, 'utf8'));
    return isObject(made) && made.of === graphDigest(graph) ? made.drawing : undefined;
  } catch {
    return undefined;
  }
}
