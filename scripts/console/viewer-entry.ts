// What an exported page brings of the product's plugins: the machines, the words for records, reports and pages, which are
// found as `src/main.ts` finds them. None of it may need Node; the build of the pages refuses it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { consolePages } from '../../src/core/contracts/console.ts';
import { PluginHost } from '../../src/core/host/plugin/host.ts';
import type { Registrations } from '../../src/core/host/plugin/registrations.ts';
import { builtinPlugins } from '../../src/main.ts';
import { machineDigest } from '../../src/plugins/console/export/gather-facts.ts';

const source = fileURLToPath(new URL('../../src/', import.meta.url));

/**
 * A script that starts the viewer with what the product's plugins bring.
 *
 * @returns `machines`: those that it has, by type of actor
 */
export async function viewerEntry(): Promise<{ entry: string; machines: Record<string, string> }> {
  const { actors, plugins, contributions, health } = new PluginHost(await builtinPlugins()).register();
  const imports: string[] = [];
  const imported = (file: string, name: string): string => {
    const local = `x${imports.length}`;
    imports.push(`import { ${name} as ${local} } from ${JSON.stringify(file)};`);
    return local;
  };
  const places = await placesOfMachines();
  const machines: Record<string, string> = {};
  const actorsOf = actors.flatMap((actor) => {
    const { type, machine, version, earlier, migrate, upcast } = actor;
    const place = places.get(machine);
    // Machines of other versions are no part of a page; without them, what they recorded would be refused half-way.
    if (!place || earlier || migrate || upcast) return [];
    machines[type] = machineDigest(actor);
    const named = imported(place.file, place.name);
    return [`{ type: ${JSON.stringify(type)}, version: ${version}, machine: ${named} }`];
  });
  const features = {
    actors: list(actorsOf),
    words: list([
      imported(join(source, 'core/host/lifecycle/records.ts'), 'words'),
      ...filesOf('words').map((file) => imported(file, 'words')),
    ]),
    stoppedReports: list([
      imported(join(source, 'core/host/integrity/records.ts'), 'stoppedReports'),
      ...filesOf('stopped-reports').map((file) => imported(file, 'stoppedReports')),
    ]),
    secretFields: list(filesOf('secret-fields').map((file) => imported(file, 'secretFields'))),
    pages: list(await pagesOf(contributions, imported)),
    health: JSON.stringify(health.map(({ name, owner }) => ({ name, owner }))),
    plugins: JSON.stringify(plugins.map(({ name, about }) => ({ name, ...(about && { about }) }))),
  };
  const start = imported(join(source, 'plugins/console/web/viewer/main.tsx'), 'startViewer');
  const fields = Object.entries(features).map(([name, value]) => `${name}: ${value}`);
  return { entry: `${imports.join('\n')}\n${start}({ ${fields.join(', ')} });\n`, machines };
}

const list = (items: readonly string[]): string => `[${items.join(', ')}]`;

function filesOf(name: string): string[] {
  return readdirSync(join(source, 'plugins'))
    .sort()
    .map((plugin) => join(source, 'plugins', plugin, `${name}.ts`))
    .filter((file) => existsSync(file));
}

/**
 * The pages that need no running plugin, as they are exported, or as an exported function contributes them. One that is made
 * of a plugin's options is not there.
 */
async function pagesOf(
  contributions: Registrations['contributions'],
  imported: (file: string, name: string) => string,
): Promise<string[]> {
  const places = new Map<unknown, Place>();
  for (const { file, name, value } of await exportsOf('ConsolePage')) {
    places.set(value, { file, name });
    if (typeof value !== 'function' || value.length !== 1 || !name.startsWith('contribute')) continue;
    const note = (_: unknown, page: unknown) => places.has(page) || places.set(page, { file, name });
    value({ contribute: note });
  }
  const found = new Map<string, string>();
  for (const { point, owner, value } of contributions) {
    const place = point === consolePages.name && value !== undefined ? places.get(value) : undefined;
    if (!place || found.has(`${place.file} ${place.name}`)) continue;
    const kind = place.name.startsWith('contribute') ? 'contribute' : 'page';
    const local = imported(place.file, place.name);
    found.set(`${place.file} ${place.name}`, `{ owner: ${JSON.stringify(owner)}, ${kind}: ${local} }`);
  }
  return [...found.values()];
}

interface Place {
  readonly file: string;
  readonly name: string;
}

/** What the files export that say a word. */
async function exportsOf(word: string): Promise<(Place & { readonly value: unknown })[]> {
  const files = readdirSync(source, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => file.endsWith('.ts') && readFileSync(file, 'utf8').includes(word))
    .sort();
  const all = await Promise.all(
    files.map(async (file) => {
      const exported: Record<string, unknown> = await import(pathToFileURL(file).href);
      return Object.entries(exported).map(([name, value]) => ({ file, name, value }));
    }),
  );
  return all.flat();
}

/** Where each machine is exported, so that it can be loaded without its plugin. */
async function placesOfMachines(): Promise<ReadonlyMap<unknown, Place>> {
  return new Map((await exportsOf('.createMachine(')).map(({ value, ...place }) => [value, place]));
}
