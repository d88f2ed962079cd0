import type { CommandDefinition } from '../../core/host/plugin/command.ts';

/** `holdfast graph`: what the plugins declare, as a flowchart. Nothing is started. */
export const graph: CommandDefinition = {
  name: 'graph',
  summary: 'draw which topic leads to which actor, effect and adapter (Mermaid)',
  example: 'holdfast graph > graph.mmd',
  async run(_args, _flags, { registrations, json, print }) {
    const { graphOf, mermaid } = await import('../graph/index.ts');
    const drawn = graphOf(await registrations());
    if (json) return print(JSON.stringify(drawn, null, 2));
    for (const line of mermaid(drawn)) print(line);
  },
};
