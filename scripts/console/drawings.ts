import { PluginHost } from '../../src/core/host/plugin/host.ts';
import { builtinPlugins } from '../../src/main.ts';
import { graphDigest, type MachineDrawing } from '../../src/plugins/console/statechart/built-drawings.ts';
import { machineGraph } from '../../src/plugins/console/statechart/graph.ts';
import { layOut } from '../../src/plugins/console/statechart/layout.ts';

/** Draws the machines of the plugins that the program brings, by type of actor. */
export async function drawMachines(): Promise<Map<string, MachineDrawing>> {
  const plugins = await builtinPlugins();
  const drawings = new Map<string, MachineDrawing>();
  for (const { type, machine } of new PluginHost(plugins).register().actors) {
    const graph = machineGraph(machine);
    const drawing = await layOut(graph);
    if (drawing) drawings.set(type, { of: graphDigest(graph), drawing });
  }
  return drawings;
}
