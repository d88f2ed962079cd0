import { counted } from '../../../core/host/amounts.ts';
import { operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import type { ToolChange } from '../../../machines/gateway/tool-pins.ts';
import { ACCEPT_PATH, LIST_PATH, type PinnedView } from '../pins/operations.ts';
import { askGateway } from './target.ts';

/** `holdfast gateway tools list`: the accepted tools of each route, and what its upstream has otherwise now. */
export const toolsCommand: CommandDefinition = {
  name: 'gateway tools list',
  summary: 'Lists the routes whose tools are pinned, and what their upstreams define otherwise; exit 1 then',
  example: 'holdfast gateway tools list --json',
  async run(_args, _flags, context) {
    const { routes } = await askGateway<{ routes: readonly PinnedView[] }>(context, LIST_PATH);
    const { json, print } = context;
    if (json) print(JSON.stringify({ routes }, null, 2));
    else for (const line of routes.flatMap(pinnedLines)) print(line);
    return routes.some(({ pending }) => pending) ? 1 : 0;
  },
};

/** `holdfast gateway tools accept <route>`: what the upstream defines now is what clients may see. */
export const acceptToolsCommand: CommandDefinition = {
  name: 'gateway tools accept <route>',
  summary: "Accepts the tools of a route's upstream as they are now, so that clients see and call them",
  example: 'holdfast gateway tools accept web_search',
  async run([route], _flags, context) {
    const body = { route, by: operatorName() };
    const { changes } = await askGateway<{ changes: readonly ToolChange[] }>(context, ACCEPT_PATH, body);
    const { json, print } = context;
    if (json) return print(JSON.stringify({ route, changes }, null, 2));
    print(`accepted: the tools of ${route} as its upstream defines them now`);
    for (const line of changes.flatMap(changeLines)) print(line);
  },
};

function pinnedLines({ route, policy, tools, by, at, pending }: PinnedView): string[] {
  const accepted = `${counted(tools, 'tool')} accepted ${at.slice(0, 19)}Z (${by})`;
  if (!pending) return [`${route}: ${policy}; ${accepted}`];
  return [
    `${route}: ${policy}; ${accepted}; its upstream has others since ${pending.at.slice(0, 19)}Z:`,
    ...pending.changes.flatMap(changeLines),
    `  accept them with: holdfast gateway tools accept ${route}`,
  ];
}

function changeLines({ tool, what, parts = [] }: ToolChange): string[] {
  return [
    `  ${plainText(tool)} ${what}`,
    ...parts.flatMap(({ part, before, after }) => [
      `    ${plainText(part)}`,
      `      - ${plainText(before)}`,
      `      + ${plainText(after)}`,
    ]),
  ];
}
